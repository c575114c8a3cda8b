package ledger

import (
	"math"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/canonical"
)

// TestPayloadsAreSorted fills every type of payload with values: its members must be declared in canonical order.
func TestPayloadsAreSorted(t *testing.T) {
	fillings := []struct {
		name string
		with filling
	}{
		{"nothing", filling{}},
		{"plain", filling{text: "x", number: 7, items: 2, raw: `{"a":1}`}},
		{"empty-lists", filling{text: "x", lists: true, raw: `{}`}},
		{"a-list-of-one", filling{text: "é", number: 1, items: 1, raw: `{}`}},
		{"quotes-and-control-characters", filling{text: "\"\\/\b\f\n\r\t\x00\x1f\x7f", number: -7, items: 2, raw: `{"\n":"\u001f"}`}},
		{"what-is-special-in-html", filling{text: "<script>&'\u2028\u2029", number: 1, items: 2, raw: "{\"<&>\":\"\u2028\"}"}},
		{"beyond-ascii", filling{text: "é\u0301\U0001f600\ufeff", number: 1, items: 3, raw: `{"é":"` + "\U0001f600" + `"}`}},
		{"replaced-already", filling{text: "a\ufffdb", number: 1, items: 2, raw: "{\"a\":\"\ufffd\"}"}},
		{"not-utf8", filling{text: "a\xff\xfe\xe2\x80b\xf0\x9f", number: 1, items: 2, raw: `{}`}},
		{"large-numbers", filling{text: "x", number: math.MaxInt64, items: 2, raw: `[1.0,1e400,-0,9007199254740993]`}},
		{"small-numbers", filling{text: "x", number: math.MinInt64, items: 2, raw: `null`}},
	}
	for _, kind := range Types() {
		for _, f := range fillings {
			t.Run(string(kind)+"/"+f.name, func(t *testing.T) {
				p, err := newPayload(kind)
				if err != nil {
					t.Fatal(err)
				}
				f.with.fill(reflect.ValueOf(p).Elem())
				got := canonical.MustSorted(p)
				want, err := canonical.JSON(got)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(string(want), string(got)); d != "" {
					t.Errorf("the members are not in canonical order (-want +got):\n%s", d)
				}
			})
		}
	}
}

// A filling is what the members of a payload are set to. One without a raw value leaves all as it is.
type filling struct {
	text   string
	number int64
	lists  bool // lists are not nil
	items  int  // of lists
	raw    string
}

// fill sets every member below v. No two members of a struct have the same value.
func (f filling) fill(v reflect.Value) {
	switch {
	case f.raw == "":
		return
	case v.Type() == reflect.TypeFor[jsontext.Value]():
		v.SetBytes([]byte(f.raw))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.number > 0)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.String:
		v.SetString(f.text)
	case reflect.Int, reflect.Int64:
		v.SetInt(f.number)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() || field.Anonymous {
				own := f
				own.text, own.number = f.text+field.Name, f.number^int64(i)
				own.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(f.text))
			return
		}
		if f.items == 0 && !f.lists {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), f.items, f.items))
		for i := range f.items {
			f.fill(v.Index(i))
		}
	default:
		panic("a payload has a member of a kind that is not filled: " + v.Kind().String())
	}
}
