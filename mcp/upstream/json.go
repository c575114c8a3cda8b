package upstream

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// members calls visit for each member of the one JSON object in doc, as [wire.Members] does. A repeated name is an error. Duplicate names
// and broken UTF-8 inside the values are left to the gates that judge the payload.
func members(doc []byte, visit func(name string, value jsontext.Value) error) error {
	seen := make(map[string]bool)
	return wire.Members(doc, func(name string, value jsontext.Value) error {
		if seen[name] {
			return fmt.Errorf("the member %q comes twice", name)
		}
		seen[name] = true
		return visit(name, value)
	}, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// sentMessage reads the method and the id of one of our messages. Both are
// zero for our answer to a server's request, which has the server's id.
func sentMessage(doc []byte) (method string, id int64, err error) {
	err = members(doc, func(name string, value jsontext.Value) (err error) {
		switch name {
		case "method":
			method, err = wire.Text(value)
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
			e.Message, err = wire.Text(value)
		case "data":
			e.Data = value
		}
		return err
	})
	if err == nil && (!code || !words) {
		err = errors.New("code or message is missing")
	}
	return &e, err
}

var errNoArray = errors.New("it is not an array")

// elements counts the elements of a JSON array.
func elements(value jsontext.Value) (n int, err error) {
	if !wire.Items(value, func(jsontext.Value, int) { n++ }) {
		err = errNoArray
	}
	return n, err
}
