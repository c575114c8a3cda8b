package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An entry is a file, folder or symbolic link of a package.
type entry struct {
	path     string // with slashes, relative
	mode     fs.FileMode
	uid, gid int
	link     string    // the target of a symbolic link
	content  []byte    // a file's content, unless source is set
	source   string    // a file with the content
	modified time.Time // times after the package's own, or none, are its own
}

// writeTar writes entries in the order of their paths. No entry is younger than the commit.
func writeTar(w io.Writer, entries []entry, committed time.Time) error {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	archive := tar.NewWriter(w)

	for _, e := range entries {
		if e.source != "" && e.link == "" && !e.mode.IsDir() {
			var err error
			if e.content, err = os.ReadFile(e.source); err != nil {
				return err
			}
		}

		h := &tar.Header{
			Name:     e.path,
			Mode:     int64(e.mode.Perm()),
			Uid:      e.uid,
			Gid:      e.gid,
			Size:     int64(len(e.content)),
			ModTime:  committed,
			Typeflag: tar.TypeReg,
			Format:   tar.FormatPAX,
		}

		if !e.modified.IsZero() && e.modified.Before(committed) {
			h.ModTime = e.modified.Truncate(time.Second)
		}

		if e.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}

		if e.mode.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, e.path+"/"
		}

		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}

		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(e.content); err != nil {
			return err
		}
	}

	return archive.Close()
}

// writeArchive writes the archive of a binary and its hook, a compressed tar file.
func writeArchive(out string, b *binary) error {
	folder := b.fileName("pgfsm")
	entries := []entry{
		{path: path.Join(folder, filepath.Base(b.path)), mode: 0o755, source: b.path},
		{path: path.Join(folder, filepath.Base(b.hook)), mode: 0o755, source: b.hook},
		{path: path.Join(folder, "THIRD_PARTY_NOTICES"), mode: 0o644, content: b.notices},
	}
	files := []string{"LICENSE", "README.md", "CHANGELOG.md", "docs/operate/alerts.yaml", "docs/operate/dashboard.json"}
	if b.goos == "linux" {
		files = append(files, "packaging/debian/pgfsm.service")
	}
	for _, file := range files {
		entries = append(entries, entry{path: path.Join(folder, path.Base(file)), mode: 0o644,
			source: filepath.Join(b.src, file)})
	}
	return createFile(filepath.Join(out, folder+".tar.gz"), func(w io.Writer) error {
		compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		return errors.Join(writeTar(compressed, entries, b.committed), compressed.Close())
	})
}

// createFile writes a file.
func createFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
