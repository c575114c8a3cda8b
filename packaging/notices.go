package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenceFile matches the files that the licences of Go modules ask to keep: their text, and
// notices.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)([-.].*)?$|(?i)-licen[cs]e(\.\w+)?$`)

// collectNotices returns the licences of Go and of each module that is linked. It looks beside
// every linked package and in the folders above, up to the module's own. A module without any is an
// error.
func collectNotices(b *binary) ([]byte, error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}	{{.Dir}}	{{$.Dir}}{{end}}{{end}}`
	listed, err := runCommand(b.src, b.goEnvironment(), "go", "list", "-deps", "-f", format, "./cmd/pgfsm")
	if err != nil {
		return nil, err
	}

	files := make(map[string][]string) // by module
	for line := range strings.Lines(string(listed)) {
		parts := strings.Split(strings.TrimSpace(line), "\t")
		if len(parts) != 3 {
			continue
		}
		module, root := parts[0], parts[1]
		for dir := parts[2]; strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			found, err := findLicences(dir)
			if err != nil {
				return nil, err
			}
			files[module] = append(files[module], found...)
		}
	}

	goroot, err := runCommand(b.src, b.goEnvironment(), "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if files["Go, its run time and its standard library"],
		err = findLicences(strings.TrimSpace(string(goroot))); err != nil {
		return nil, err
	}

	return joinNotices(files)
}

func findLicences(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type().IsRegular() && licenceFile.MatchString(e.Name()) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, err
}

func joinNotices(files map[string][]string) ([]byte, error) {
	var text bytes.Buffer
	text.WriteString("pgfsm contains the following modules. Their licences and notices follow.\n")
	for _, module := range slices.Sorted(maps.Keys(files)) {
		paths := files[module]
		if len(paths) == 0 {
			return nil, fmt.Errorf("%s has no licence file", module)
		}
		slices.Sort(paths)
		for _, path := range slices.Compact(paths) {
			licence, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&text, "\n%s\n%s, %s\n\n%s\n", strings.Repeat("=", 72), module, filepath.Base(path),
				bytes.TrimSpace(licence))
		}
	}
	return text.Bytes(), nil
}
