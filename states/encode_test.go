package states

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
)

// TestRecordedTypesAreSorted fills every recorded type with values: its members must be declared in canonical order.
func TestRecordedTypesAreSorted(t *testing.T) {
	all := []any{
		&Binding{},
		&ListTools{}, &Complete{}, &ReadHistory{}, &AwaitDecision{}, &CallTool{},
		&ToolsListed{}, &Completed{}, &HistoryRead{}, &Decided{}, &ToolReturned{}, &EffectFailed{}, &Interrupted{},
	}
	facts := reflect.TypeFor[Facts]()
	for i := range facts.NumField() {
		all = append(all, reflect.New(facts.Field(i).Type.Elem()).Interface().(Fact))
	}
	for _, v := range all {
		for _, text := range []string{"", "x", "\"\\\n\u2028<é\U0001f600\x00"} {
			t.Run(fmt.Sprintf("%T-%q", v, text), func(t *testing.T) {
				fill(reflect.ValueOf(v).Elem(), text)
				want, err := canonical.Marshal(v)
				if err != nil {
					t.Fatalf("Marshal() = %v", err)
				}
				if d := cmp.Diff(string(want), string(canonical.MustSorted(v))); d != "" {
					t.Errorf("the members are not in canonical order (-want +got):\n%s", d)
				}
			})
		}
	}
}

// fill sets every exported field below v.
func fill(v reflect.Value, text string) {
	if v.Type() == reflect.TypeFor[jsontext.Value]() {
		v.SetBytes([]byte(`{"a":1}`))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		v.SetInt(-7)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Tag.Get("json") != "-" {
				fill(v.Field(i), text)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(text + "\xff"[:len(text)%2]))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), text)
		fill(v.Index(1), text+"y")
	}
}

// TestPermitIsHandedOutOnce asks for the same permitted call twice.
func TestPermitIsHandedOutOnce(t *testing.T) {
	p := &PermittedFact{Arguments: jsontext.Value(`{}`), Server: "s", Tool: "t"}
	p.Permit = p.digest("run")
	r := &Run{id: "run", state: Dispatched, facts: Facts{Permitted: p, Dispatched: &DispatchedFact{Permit: p.Permit}}}
	call := &CallTool{Permit: p.Permit, Server: "s", Tool: "t", Bytes: object(`{}`)}
	for name, other := range map[string]*CallTool{
		"other-bytes":  {Permit: p.Permit, Server: "s", Tool: "t", Bytes: object(`{"a":1}`)},
		"other-tool":   {Permit: p.Permit, Server: "s", Tool: "u", Bytes: object(`{}`)},
		"other-server": {Permit: p.Permit, Server: "r", Tool: "t", Bytes: object(`{}`)},
		"no-permit":    {Server: "s", Tool: "t", Bytes: object(`{}`)},
	} {
		if err := r.consumePermit(other); err != ErrPermit {
			t.Errorf("%s: consume() = %v, want %v", name, err, ErrPermit)
		}
	}
	if err := r.consumePermit(call); err != nil {
		t.Fatalf("consume() = %v", err)
	}
	if err := r.consumePermit(call); err != ErrPermit {
		t.Errorf("a second consume() = %v, want %v", err, ErrPermit)
	}
}

// object reads arguments. It ends the test process if they are no object.
func object(text string) canonical.Object {
	o, err := canonical.ReadObject([]byte(text))
	if err != nil {
		panic(err)
	}
	return o
}
