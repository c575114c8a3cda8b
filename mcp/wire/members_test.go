package wire_test

import (
	"testing"

	"pgfsm/mcp/wire"
)

func TestObjectsAreReadStrictly(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		valid     bool
	}{
		{"same-name-elsewhere", `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`, true},
		{"half-of-a-pair", `{"a":"\ud83d"}`, false},
		{"same-name-twice-by-an-escape", `{"a":1,"\u0061":2}`, false},
		{"same-name-twice-inside", `{"a":[{"b":1,"c":2,"b":3}]}`, false},
		{"broken-utf8", "{\"a\":\"\xff\"}", false},
		{"byte-order-mark", "\ufeff{}", false},
		{"not-closed", `{"a":1`, false},
		{"text-behind", `{} {}`, false},
		{"array", `[{}]`, false},
		{"nothing", ``, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := wire.CheckObject([]byte(tt.doc)); (err == nil) != tt.valid {
				t.Errorf("CheckObject(%q) = %v, want it valid: %t", tt.doc, err, tt.valid)
			}
		})
	}
}
