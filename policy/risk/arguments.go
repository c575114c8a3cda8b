package risk

import (
	"errors"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/go-json-experiment/json/jsontext"
)

// presence says whether a place exists. The zero presence is unknown.
type presence uint8

const (
	unreachable presence = iota // its parent is a scalar or null
	missing
	there
)

// find follows a path from the arguments.
func find(v ref.Val, path []string) (ref.Val, presence) {
	for _, step := range path {
		switch in := v.(type) {
		case traits.Mapper:
			member, ok := in.Find(types.String(step))
			if !ok {
				return nil, missing
			}
			v = member
		case traits.Lister:
			i, ok := listIndex(step)
			switch size := in.Size().(types.Int); {
			case !ok:
				return nil, unreachable
			case i < 0 || i >= int(size):
				return nil, missing
			}
			v = in.Get(types.Int(i))
		default:
			return nil, unreachable
		}
	}
	return v, there
}

// listIndex reads an index as RFC 6901, section 4, writes it. One that is too large for any list is an index too.
func listIndex(step string) (int, bool) {
	if step == "" || strings.Trim(step, "0123456789") != "" || len(step) > 1 && step[0] == '0' {
		return 0, false
	}
	i, err := strconv.Atoi(step)
	if err != nil {
		return -1, true
	}
	return i, true
}

// splitPath returns the steps of a predicate's path.
func splitPath(path string) ([]string, error) {
	switch {
	case path == "":
		return nil, errors.New("it is empty; name an argument, or a place in the arguments as a JSON pointer")
	case len(path) > MaxPathBytes:
		return nil, tooLong(len(path), MaxPathBytes)
	case path[0] != '/':
		return []string{path}, nil
	}
	pointer := jsontext.Pointer(path)
	if !pointer.IsValid() {
		return nil, errors.New("it is not a JSON pointer: behind ~ stands 0 or 1")
	}
	var steps []string
	for step := range pointer.Tokens() {
		steps = append(steps, step)
	}
	return steps, nil
}
