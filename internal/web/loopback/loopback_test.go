package loopback_test

import (
	"errors"
	"testing"

	"pgfsm/internal/web/loopback"
)

func TestListen(t *testing.T) {
	for _, c := range []struct {
		name, address string
		elsewhere     bool // what is refused is that it is not this machine
		ok            bool
	}{
		{"loopback", "127.0.0.1:0", false, true},
		{"all-of-127", "127.0.0.2:0", false, true},
		{"another-loopback", "127.1.2.3:0", false, true},
		{"localhost", "localhost:0", false, true},
		{"all-interfaces", "0.0.0.0:0", true, false},
		{"all-of-ipv6", "[::]:0", true, false},
		{"no-host", ":0", true, false},
		{"other-machine", "192.0.2.1:0", true, false},
		{"name", "example.com:0", true, false},
		{"another-name", "gateway.test:0", true, false},
		{"name-alike", "localhost.example.com:0", true, false},
		{"decimal", "2130706433:0", true, false},
		{"zone", "[::1%lo]:0", true, false},
		{"no-port", "127.0.0.1", false, false},
		{"port-one-past", "127.0.0.1:65536", false, false},
		{"port-by-name", "127.0.0.1:http", false, false},
		{"port-with-a-sign", "127.0.0.1:+1", false, false},
		{"empty", "", false, false},
		{"url", "http://127.0.0.1:1", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			on, err := loopback.Listen(c.address)
			if err == nil {
				on.Close()
			}
			if (err == nil) != c.ok || errors.Is(err, loopback.ErrElsewhere) != c.elsewhere {
				t.Errorf("Listen(%q) = %v, want ok %t, elsewhere %t", c.address, err, c.ok, c.elsewhere)
			}
		})
	}
}

func TestHost(t *testing.T) {
	for name, want := range map[string]bool{ // in any order: each stands alone
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.255.0.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.": false, "127.0.0.1:80": false, "[::1]": false, "::1%lo": false, "127.1": false, "0.0.0.0": false, "10.0.0.1": false,
	} {
		if got := loopback.Host(name); got != want {
			t.Errorf("Host(%q) = %t, want %t", name, got, want)
		}
	}
}
