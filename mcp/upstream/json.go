package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// members calls visit for each member of the one JSON object in doc, in order. A name that comes twice, anything but
// an object, and text behind it are errors. Inside the values duplicate names and broken UTF-8 are left for the gates
// that judge the payload. The value is only valid during the visit.
func members(doc []byte, visit func(name string, value jsontext.Value) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return errors.New("it is not a JSON object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	seen := make(map[string]struct{})
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		if _, twice := seen[name]; twice {
			return fmt.Errorf("the member %q comes twice", name)
		}
		seen[name] = struct{}{}
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := visit(name, value); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("there is text behind the JSON object")
	}
	return nil
}

// sentMessage reads the method and the id of a message of ours; both are zero for our answer to a server's request,
// whose id is the server's.
func sentMessage(doc []byte) (method string, id int64, err error) {
	err = members(doc, func(name string, value jsontext.Value) (err error) {
		switch name {
		case "method":
			method, err = text(value)
		case "id":
			id, _ = plainID(value)
		}
		return err
	})
	if method == "" {
		id = 0
	}
	return method, id, err
}

// plainID reads an id as we issue them: a positive integer without sign, fraction, exponent or leading zero.
func plainID(id jsontext.Value) (int64, error) {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != string(id) {
		return 0, fmt.Errorf("the id %.40q is not one of ours", string(id))
	}
	return n, nil
}

// readError reads the error object of JSON-RPC 2.0, section 5.1. Unknown members are left out.
func readError(doc []byte) (*RPCError, error) {
	var e RPCError
	var code, words bool
	err := members(doc, func(name string, value jsontext.Value) (err error) {
		switch name {
		case "code":
			code = true
			e.Code, err = strconv.ParseInt(string(value), 10, 64)
		case "message":
			words = true
			e.Message, err = text(value)
		case "data":
			e.Data = value.Clone()
		}
		return err
	})
	if err == nil && (!code || !words) {
		err = errors.New("code or message is missing")
	}
	return &e, err
}

// text decodes a JSON string.
func text(value jsontext.Value) (string, error) {
	if value.Kind() != '"' {
		return "", errors.New("it is not a string")
	}
	b, err := jsontext.AppendUnquote(nil, value)
	return string(b), err
}

// elements counts the elements of a JSON array.
func elements(value jsontext.Value) (int, error) {
	if value.Kind() != '[' {
		return 0, errors.New("it is not an array")
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := dec.ReadToken(); err != nil {
		return 0, err
	}
	n := 0
	for ; dec.PeekKind() != ']'; n++ {
		if err := dec.SkipValue(); err != nil {
			return 0, err
		}
	}
	return n, nil
}
