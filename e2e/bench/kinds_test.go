package bench

import "bytes"

// A kind of call: which tool, how large the answer, and what it must be.
type kind struct {
	tool  string
	size  int // bytes of the text that comes back
	judge func(message, want []byte) string
}

// Kinds of calls, which every upstream of the bench serves. For pgfsm they differ in what the policy says of the tool.
var (
	echo    = kind{"echo", tokenBytes, said}
	refused = kind{"refused", tokenBytes, denied}
)

// blob asks for a text of a size, above tokenBytes.
func blob(size int) kind { return kind{"blob", size, said} }

// said holds an answer to the text that was asked for: all of it, and no error.
func said(message, want []byte) string {
	_, text, found := bytes.Cut(message, []byte(`"text":"`))
	if !found || !bytes.HasPrefix(text, want) || !bytes.HasPrefix(text[len(want):], []byte(`"`)) {
		return "the answer does not have the text that was asked for"
	}
	if bytes.Contains(message, []byte(`"isError":true`)) {
		return "the answer is an error"
	}
	return ""
}

// denied holds an answer to be a refusal that the gateway made.
func denied(message, want []byte) string {
	if !bytes.Contains(message, []byte(`"isError":true`)) || !bytes.Contains(message, []byte(`"code":"policy_denied"`)) {
		return "the answer is no refusal"
	}
	return untouched(message, want)
}

// untouched holds an answer not to come from the server: it would have the text that was sent.
func untouched(message, want []byte) string {
	if bytes.Contains(message, append([]byte(`"text":"`), want...)) {
		return "the server was asked"
	}
	return ""
}
