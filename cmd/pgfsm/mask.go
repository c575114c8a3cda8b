package main

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/policy/settings"
)

// masked stands for a secret that a server sent back to us.
const masked = "[masked by pgfsm]"

// mask takes our own secrets out of what a server sent, before it is recorded. What holds none stays as it came, byte
// for byte.
func (a *app) mask(b []byte) canonical.Text {
	return maskStrings(a.replace(b), a.replace, maskDepth)
}

func (a *app) replace(b []byte) []byte {
	for _, secret := range a.secrets {
		if bytes.Contains(b, []byte(secret)) {
			b = bytes.ReplaceAll(b, []byte(secret), []byte(masked))
		}
	}
	return b
}

// maskDepth is how deep JSON inside strings of JSON is looked into: a model's plan is a string of its response, and the
// document that a tool returns as text is one of the result.
const maskDepth = 8

// maskStrings looks into the strings of a JSON document too, where an escape can hide a secret, and into the documents in
// these. It goes as far as b is JSON.
func maskStrings(b []byte, replace func([]byte) []byte, depth int) []byte {
	if depth == 0 || bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	dec := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var out []byte
	from := 0 // what of b is in out already
	for {
		if dec.PeekKind() != '"' {
			if _, err := dec.ReadToken(); err != nil {
				return append(out, b[from:]...)
			}
			continue
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return append(out, b[from:]...)
		}
		text, _ := jsontext.AppendUnquote(nil, raw) // invalid UTF-8 is replaced, which hides nothing of a secret
		if clean := maskStrings(replace(text), replace, depth-1); !bytes.Equal(clean, text) {
			end := int(dec.InputOffset())
			out = append(out, b[from:end-len(raw)]...)
			out, _ = jsontext.AppendQuote(out, clean) // the same
			from = end
		}
	}
}

// withCredentials adds to secrets what stands behind a scheme: a server that echoes only the token of "Bearer TOKEN"
// echoes the secret. The longest come first, so that none is masked in part.
func withCredentials(secrets []string) []string {
	for _, s := range slices.Clone(secrets) {
		_, credential, _ := strings.Cut(s, " ")
		if len(credential) >= settings.MinMaskedBytes && !slices.Contains(secrets, credential) {
			secrets = append(secrets, credential)
		}
	}
	slices.SortStableFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return secrets
}
