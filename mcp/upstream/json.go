package upstream

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// readMembers reads the wanted members of the one JSON object in doc. A wanted member that comes
// twice is an error. Duplicate names and broken UTF-8 inside the values are left to the gates that
// judge the payload. The error quotes nothing of doc, because a quote may cut a secret.
func readMembers(doc []byte, wanted map[string]*jsontext.Value) error {
	err := wire.Members(doc, func(name string, value jsontext.Value) error {
		switch target := wanted[name]; {
		case target == nil:
		case *target != nil:
			return fmt.Errorf("the member %q comes twice", name)
		default:
			*target = value
		}
		return nil
	}, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return errors.New(wire.Reason(doc, err))
	}
	return nil
}

// sentMethod reads the method of one of our messages; "" for our answer to a server's request.
func sentMethod(doc []byte) (string, error) {
	var method jsontext.Value
	if err := readMembers(doc, map[string]*jsontext.Value{"method": &method}); err != nil || method == nil {
		return "", err
	}
	return wire.Text(method)
}

// plainID reads an id as we issue them: a positive integer without sign, fraction, exponent or
// leading zero.
func plainID(id jsontext.Value) (int64, error) {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil || n <= 0 || string(id) != strconv.FormatInt(n, 10) {
		return 0, errForeignID
	}
	return n, nil
}

var errForeignID = errors.New("the id is not one of ours")

// readError reads the error object of JSON-RPC 2.0, section 5.1. Unknown members are left out.
func readError(doc []byte) (*RPCError, error) {
	var code, message, data jsontext.Value
	err := readMembers(doc, map[string]*jsontext.Value{"code": &code, "message": &message, "data": &data})
	if err != nil {
		return nil, err
	}
	if code == nil || message == nil {
		return nil, errors.New("code or message is missing")
	}

	e := &RPCError{Data: data}
	if e.Code, err = strconv.ParseInt(string(code), 10, 64); err != nil {
		return nil, errors.New("code is not an integer")
	}
	e.Message, err = wire.Text(message)
	return e, err
}
