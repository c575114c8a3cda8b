package config

import (
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
)

// The ledger stands beside the configuration, wherever that is read from, and is no part of what is judged by.
func TestWhereTheLedgerIs(t *testing.T) {
	for _, c := range []struct{ name, config, key, want string }{
		{"none", "c.yaml", "", ""},
		{"beside-the-file", "sub/c.yaml", "ledger: \"sqlite:pgfsm.db\"\n", "sqlite:sub/pgfsm.db"},
		{"absolute", "sub/c.yaml", "ledger: sqlite:/var/lib/pgfsm.db\n", "sqlite:/var/lib/pgfsm.db"},
		{"with-a-colon", "c.yaml", "ledger: sqlite:a:b.db\n", "sqlite:a:b.db"},
	} {
		t.Run(c.name, func(t *testing.T) {
			allow := "allow.json"
			if c.config == "sub/c.yaml" {
				allow = "sub/allow.json"
			}
			load := func(key string) *Loaded {
				l, err := Load(c.config, openMap(map[string]string{c.config: minimal + key, allow: "{}"}), Overrides{})
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			got, without := load(c.key), load("")
			if got.Ledger != c.want {
				t.Errorf("Ledger = %q, want %q", got.Ledger, c.want)
			}
			if a, b := digestOf(t, got), digestOf(t, without); a != b {
				t.Errorf("the ledger changes the bundle: %s, %s", a, b)
			}
		})
	}
}

func digestOf(t *testing.T, l *Loaded) canonical.Digest {
	t.Helper()
	b, err := policy.Compile(l.Content)
	if err != nil {
		t.Fatal(err)
	}
	return b.Digest()
}
