package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user of the images. No package of Debian has it.
const user = 65532

// programLayer returns what both images have: the binary, a configuration that denies everything,
// and a folder for the ledger.
func programLayer(b *binary) []entry {
	entries := []entry{
		{path: "var/lib/pgfsm", mode: fs.ModeDir | 0o700, uid: user, gid: user},
		{path: "etc/pgfsm", mode: fs.ModeDir | 0o755},
		{path: "usr/share/doc/pgfsm", mode: fs.ModeDir | 0o755},
		{path: "usr/bin/pgfsm", mode: 0o755, source: b.path},
		{path: "usr/share/doc/pgfsm/THIRD_PARTY_NOTICES", mode: 0o644, content: b.notices},
		{path: "usr/share/doc/pgfsm/LICENSE", mode: 0o644, source: filepath.Join(b.src, "LICENSE")},
	}
	for _, file := range []string{"pgfsm.yaml", "allowlist.json"} {
		entries = append(entries, entry{path: "etc/pgfsm/" + file, mode: 0o644,
			source: filepath.Join(b.src, "packaging", "debian", file)})
	}
	return entries
}

// scratchImage writes an image without a system: the program and CA certificates.
func scratchImage(out string, b *binary) error {
	entries := append(programLayer(b),
		entry{path: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		entry{path: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/sbin/nologin\npgfsm:x:65532:65532:pgfsm:/var/lib/pgfsm:/sbin/nologin\n")},
		entry{path: "etc/group", mode: 0o644, content: []byte("root:x:0:\npgfsm:x:65532:\n")},
		entry{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: readAuthorities()},
	)
	for _, dir := range []string{"etc", "etc/ssl", "etc/ssl/certs", "usr", "usr/bin", "usr/share", "usr/share/doc",
		"var", "var/lib"} {
		entries = append(entries, entry{path: dir, mode: fs.ModeDir | 0o755})
	}
	return writeImage(out, "pgfsm", b, entries)
}

// readAuthorities returns Mozilla's CA certificates, of the version of the module that go.mod
// names.
func readAuthorities() []byte {
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		certificates.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
	}
	return certificates.Bytes()
}

// nodeImage writes an image with a Debian system and Node, for servers that pgfsm starts.
func nodeImage(out string, b *binary, root string) error {
	entries := programLayer(b)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}

		owner := info.Sys().(*syscall.Stat_t)
		file := entry{
			path:     name,
			mode:     info.Mode(),
			uid:      int(owner.Uid),
			gid:      int(owner.Gid),
			source:   path,
			modified: info.ModTime(),
		}

		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			if file.link, err = os.Readlink(path); err != nil {
				return err
			}
		case !info.Mode().IsRegular() && !info.IsDir():
			return nil // devices
		}

		entries = append(entries, file) // without the bits that give a program another user's rights
		if info.IsDir() && strings.Contains(" dev proc run sys tmp ", " "+name+" ") {
			return filepath.SkipDir
		}

		return nil
	})
	if err != nil {
		return err
	}

	return writeImage(out, "pgfsm-node", b, entries)
}

// writeImage writes an image of one layer as an OCI archive.
func writeImage(out, product string, b *binary, entries []entry) error {
	work := filepath.Dir(b.path)
	files := filepath.Join(work, product+".layer.tar")
	if err := createFile(files, func(w io.Writer) error { return writeTar(w, entries, b.committed) }); err != nil {
		return err
	}
	layer, err := tarball.LayerFromFile(files, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(6),
		tarball.WithCompressedCaching)
	if err != nil {
		return err
	}

	// The image: its layer, then its configuration.
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON),
		mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "make dist", Created: v1.Time{Time: b.committed}}})
	if err != nil {
		return err
	}

	config, err := image.ConfigFile()
	if err != nil {
		return err
	}

	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.goos, b.goarch, v1.Time{Time: b.committed}
	config.Config = v1.Config{
		User:       "65532:65532",
		WorkingDir: "/var/lib/pgfsm",
		Entrypoint: []string{"/usr/bin/pgfsm"},
		Cmd:        []string{"serve", "-c", "/etc/pgfsm/pgfsm.yaml"},
		Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/var/lib/pgfsm"},
		Volumes:    map[string]struct{}{"/var/lib/pgfsm": {}},
		Labels: map[string]string{"org.opencontainers.image.title": product,
			"org.opencontainers.image.version":  b.version,
			"org.opencontainers.image.revision": b.revision, "org.opencontainers.image.licenses": "Apache-2.0"},
	}

	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}

	// The archive: a folder in the layout of OCI, packed.
	folder := filepath.Join(work, product+".oci")
	written, err := layout.Write(folder, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	if err := written.AppendImage(image, layout.WithPlatform(v1.Platform{OS: b.goos, Architecture: b.goarch}),
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": product + ":" +
			b.version})); err != nil {
		return err
	}

	return ociArchive(filepath.Join(out, b.fileName(product)+".oci.tar"), folder, b)
}

// ociArchive packs an image's folder.
func ociArchive(name, folder string, b *binary) error {
	var entries []entry
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		inside, err := filepath.Rel(folder, path)
		if e.IsDir() {
			entries = append(entries, entry{path: inside, mode: fs.ModeDir | 0o755})
		} else {
			entries = append(entries, entry{path: inside, mode: 0o644, source: path})
		}
		return err
	})
	return errors.Join(err, createFile(name, func(w io.Writer) error { return writeTar(w, entries, b.committed) }))
}
