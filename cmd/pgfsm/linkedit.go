package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
	"pgfsm/policy/canonical"
)

// What became of an entry.
const (
	linkNone     = "none" // the file has it already
	linkAdded    = "added"
	linkReplaced = "replaced"
)

// editEntry returns a client's file with an entry in it, under a name below a key, indented anew. All other members keep their
// order and their bytes. The errors quote nothing of the file: secrets may be anywhere in it.
func editEntry(text []byte, key, name string, entry jsontext.Value) (edited []byte, change string, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	if err := strictObject(text); err != nil {
		return nil, "", err
	}
	servers := wire.Member(text, key)
	if servers == nil {
		servers = jsontext.Value("{}")
	} else if servers.Kind() != '{' {
		return nil, "", fmt.Errorf("%q is not an object", key)
	}
	change = linkAdded
	if was := wire.Member(servers, name); was != nil {
		if sameJSON(was, entry) {
			return text, linkNone, nil
		}
		change = linkReplaced
	}
	if servers, err = wire.Set(servers, name, entry); err != nil {
		return nil, "", err
	}
	whole, err := wire.Set(text, key, servers)
	if err != nil {
		return nil, "", err
	}
	if err := whole.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, "", err
	}
	return append(whole, '\n'), change, nil
}

// strictObject reports where a text is not one strict JSON object.
func strictObject(text []byte) error {
	err := wire.Members(text, func(string, jsontext.Value) error { return nil })
	var syntax *jsontext.SyntacticError
	switch {
	case err == nil || !errors.As(err, &syntax):
		return err
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("line %d: a name is there twice", lineOf(text, syntax.ByteOffset))
	}
	return fmt.Errorf("line %d: this is not JSON", lineOf(text, syntax.ByteOffset))
}

// lineOf is the line of an offset, from 1.
func lineOf(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(int(offset), len(text))], []byte("\n"))
}

func sameJSON(a, b jsontext.Value) bool {
	was, err := canonical.JSON(a)
	now, failed := canonical.JSON(b)
	return err == nil && failed == nil && bytes.Equal(was, now)
}
