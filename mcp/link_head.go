package mcp

import (
	"bytes"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// An errand is one HTTP request, before it is spelled.
type errand struct {
	method string
	target *url.URL
	head   head
	frame  []byte  // the body; nil: there is none
	permit *permit // of a tools/call
}

// A head is what goes with a request. It may be shared: it is never changed.
type head struct {
	header  http.Header
	spelled []byte   // header as it goes onto the wire; nil: nobody has spelled it yet
	more    []Header // goes beside it, and has no name of it; in canonical form, each once
}

// fields are all fields of the head as a header, which must not be changed.
func (h *head) fields() http.Header {
	if len(h.more) == 0 {
		return h.header
	}
	header := h.header.Clone()
	for _, field := range h.more {
		header.Set(field.Name, field.Value)
	}
	return header
}

// spellHeader is a header as it goes onto the wire, without the blank line behind it. What would end a line, or cannot be a field, is
// an error.
func spellHeader(header http.Header) ([]byte, error) {
	for name, values := range header { // in any order: all must be good
		for _, value := range values {
			if err := checkField(name, value); err != nil {
				return nil, err
			}
		}
	}
	var b bytes.Buffer
	err := header.Write(&b) // sorted
	return b.Bytes(), err
}

// checkField allows what can stand in a header: RFC 9110, section 5.5.
func checkField(name, value string) error {
	bad := name == "" || strings.ContainsFunc(name, func(r rune) bool { return !tokenRune(r) })
	for i := 0; i < len(value) && !bad; i++ {
		bad = value[i] < ' ' && value[i] != '\t' || value[i] == 0x7f
	}
	if bad {
		return fmt.Errorf("invalid header field value for %.100q", name)
	}
	return nil
}

// spell appends the request up to its body to b.
func (r *errand) spell(b []byte) ([]byte, error) {
	path := r.target.RequestURI()
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return b, fmt.Errorf("the path of its URL holds a control character")
	}
	spelled := r.head.spelled
	if spelled == nil {
		var err error
		if spelled, err = spellHeader(r.head.header); err != nil {
			return b, err
		}
	}
	b = append(append(append(b, r.method...), ' '), path...)
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), r.target.Host...), "\r\n"...)
	b = append(b, spelled...)
	for _, field := range r.head.more {
		if err := checkField(field.Name, field.Value); err != nil {
			return b, err
		}
		b = append(append(append(b, field.Name...), ": "...), textproto.TrimString(field.Value)...)
		b = append(b, "\r\n"...)
	}
	if r.frame != nil {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), int64(len(r.frame)), 10), "\r\n"...)
	}
	return append(b, "\r\n"...), nil
}
