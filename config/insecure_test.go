package config

import (
	"io/fs"
	"strings"
	"testing"
)

func TestInsecure(t *testing.T) {
	for _, c := range []struct {
		name  string
		mode  fs.FileMode
		owner int
		want  string // in the error; empty for none
	}{
		{"ours-alone", 0o600, 1000, ""},
		{"others-may-read", 0o644, 1000, ""},
		{"the-systems-own", 0o644, 0, ""},
		{"group-may-write", 0o620, 1000, "chmod go-w"},
		{"world-may-write", 0o602, 1000, "chmod go-w"},
		{"the-systems-own-but-writable", 0o666, 0, "chmod go-w"},
		{"another-owner", 0o600, 1001, "chown"},
		{"no-owner", 0o600, -1, "chown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Insecure(c.mode, c.owner, 1000)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("Insecure(%v, %d, 1000) = %v, want %q in it", c.mode, c.owner, err, c.want)
			}
		})
	}
}
