package gateway

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestErrorTypesAreBounded: a server cannot make up values of the attribute error.type. Each value is a series of the metrics, whose number is bounded.
func TestErrorTypesAreBounded(t *testing.T) {
	for _, tt := range []struct{ name, failed, want string }{
		{"of-json-rpc", `{"code":-32602,"message":"no"}`, "-32602"},
		{"of-mcp", `{"code":-32042,"message":"no"}`, "-32042"},
		{"of-the-server", `{"code":-32050,"message":"no"}`, OtherError},
		{"positive", `{"code":404,"message":"no"}`, OtherError},
		{"a-text", `{"code":"-32602","message":"no"}`, OtherError},
		{"missing", `{"message":"no"}`, OtherError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var q request
			q.noteError(jsontext.Value(tt.failed))
			if q.observed.ErrorType != tt.want {
				t.Errorf("error.type is %q, want %q", q.observed.ErrorType, tt.want)
			}
		})
	}
}
