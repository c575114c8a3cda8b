package sqlrows

import (
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger"
)

const sessionColumns = "secret, kind, token, name, identity, auth_time, created, used, expires"

var upsertSession = "INSERT INTO sessions (" + sessionColumns + ") VALUES " + placeholders(9) +
	onConflict("secret", sessionColumns)

func readSession(r *Row) ledger.Session {
	return ledger.Session{
		Secret:   canonical.Digest(r.Text()),
		Kind:     r.Text(),
		Token:    r.Text(),
		Name:     r.Text(),
		Identity: readJSON(r),
		AuthTime: r.Text(),
		Created:  r.Text(),
		Used:     r.Text(),
		Expires:  r.Text(),
	}
}

// readJSON reads JSON; an empty text becomes nil.
func readJSON(r *Row) jsontext.Value {
	if text := r.OptionalText(); text != "" {
		return jsontext.Value(text)
	}
	return nil
}

func (t *Tx) Session(secret canonical.Digest) (ledger.Session, error) {
	return queryRow(t, "session", secret, readSession, "SELECT "+sessionColumns+" FROM sessions WHERE secret = ?",
		string(secret))
}

func (t *Tx) Sessions() iter.Seq2[ledger.Session, error] {
	return queryRows(t, fullPage, readSession, "SELECT "+sessionColumns+" FROM sessions ORDER BY secret")
}

func (t *Tx) PutSession(s ledger.Session) error {
	return t.Change("session", s.Secret, upsertSession, string(s.Secret), s.Kind, s.Token, s.Name, string(s.Identity),
		s.AuthTime,
		s.Created, s.Used, s.Expires)
}

func (t *Tx) DropSession(secret canonical.Digest) error {
	return t.Change("", nil, "DELETE FROM sessions WHERE secret = ?", string(secret))
}
