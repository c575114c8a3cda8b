package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Prefixes of members of _meta.
const (
	ReservedPrefix = "io.modelcontextprotocol/" // the protocol's own members, which belong to one hop
	OwnPrefix      = "io.pgfsm/"                // the gateway's members, which clients may believe
	OwnSession     = OwnPrefix + "session"      // of a call: the session that its client names
)

// maxMetaDepth bounds the depth to which [StripOwn] looks. The objects of the protocol nest less.
const maxMetaDepth = 16

// StripOwn removes the members under [OwnPrefix], which no client and no server may forge, from the
// _meta of a message's object and of its parts, such as the entries of a list. Arguments,
// structured content and schemas are data, in which _meta has no meaning: they stay as they are,
// and so does every other byte.
func StripOwn(doc jsontext.Value) jsontext.Value {
	// Nearly all documents; names may be escaped.
	if !bytes.Contains(doc, []byte(OwnPrefix[:len(OwnPrefix)-1])) && !bytes.Contains(doc, []byte(`\u00`)) {
		return doc
	}

	var edits []Edit
	var collectEdits func(doc []byte, offset, depth int)
	collectEdits = func(doc []byte, offset, depth int) {
		switch {
		case depth > maxMetaDepth:
		case doc[0] == '[':
			Items(doc, func(item jsontext.Value, i int) { collectEdits(item, offset+i, depth+1) })
		case doc[0] == '{':
			ForEachMember(doc, func(p Piece) {
				switch p.Name {
				case "_meta":
					if meta, changed := removeMembers(p.Value, OwnPrefix, nil); changed {
						edits = append(edits, Edit{offset + p.At, len(p.Value), meta})
					}
				case "arguments", "structuredContent", "inputSchema", "outputSchema":
				default:
					collectEdits(p.Value, offset+p.At, depth+1)
				}
			})
		}
	}

	if trimmed := bytes.TrimLeft(doc, " \t\r\n"); len(trimmed) > 0 {
		collectEdits(trimmed, len(doc)-len(trimmed), 0)
	}

	return Splice(doc, nil, edits)
}

// StripMeta returns the params of a message for the other side: [StripOwn] is
// applied, and the members that the protocol reserves in _meta are removed.
func StripMeta(params jsontext.Value) jsontext.Value {
	params = StripOwn(params)
	var edits []Edit
	ForEachMember(params, func(p Piece) {
		if p.Name == "_meta" {
			if meta, changed := ReplaceReserved(p.Value, nil); changed {
				edits = append(edits, Edit{p.At, len(p.Value), meta})
			}
		}
	})
	return Splice(params, nil, edits)
}

// ReplaceReserved removes the members under [ReservedPrefix] from a _meta object, and adds a member
// in front if one is given. changed is false if meta is returned as it is.
func ReplaceReserved(meta, member []byte) (_ []byte, changed bool) {
	return removeMembers(meta, ReservedPrefix, member)
}

func removeMembers(meta []byte, prefix string, member []byte) (_ []byte, changed bool) {
	var members [][]byte
	if member != nil {
		members = append(members, member)
	}
	removed := false
	isObject := ForEachMember(meta, func(p Piece) {
		if strings.HasPrefix(p.Name, prefix) {
			removed = true
		} else {
			members = append(members, p.Whole)
		}
	})
	if !isObject || !removed && member == nil {
		return meta, false
	}
	return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}")), true
}

// StripProgressToken returns params without a progress token; nil if they cannot be read.
func StripProgressToken(params jsontext.Value) jsontext.Value {
	meta := Member(params, "_meta")
	if Member(meta, "progressToken") == nil {
		return params
	}
	meta, err := Set(meta, "progressToken", nil)
	if err != nil {
		return nil
	}
	params, err = Set(params, "_meta", meta)
	if err != nil {
		return nil
	}
	return params
}

// ProgressToken returns the progress token of a _meta object; nil if there is none.
func ProgressToken(meta jsontext.Value) jsontext.Value {
	token := Member(meta, "progressToken")
	if token.Kind() != '"' && token.Kind() != '0' {
		return nil
	}
	return token
}
