package sqlrows

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/traces/ledger"
)

const toldColumns = "kind, actor, name, value, expires"

const (
	ofTold    = " FROM told WHERE kind = ? AND actor = ?"
	limitTold = "DELETE" + ofTold + " AND (expires <= ? OR (expires, name) < (SELECT expires, name" + ofTold +
		" ORDER BY expires DESC, name DESC LIMIT 1 OFFSET ?))"
)

var upsertTold = "INSERT INTO told (" + toldColumns + ") VALUES " + placeholders(5) + onConflict("kind, actor, name", "value, expires")

func (t *Tx) ReadTold(kind, actor, name string) (ledger.Told, error) {
	return queryRow(t, "what was told about", name, func(r *Row) ledger.Told {
		return ledger.Told{Kind: r.Text(), Actor: r.Text(), Name: r.Text(), Value: jsontext.Value(r.Text()), Expires: r.Text()}
	}, "SELECT "+toldColumns+ofTold+" AND name = ?", kind, actor, name)
}

func (t *Tx) PutTold(told ledger.Told) error {
	return t.Change("told", told.Name, upsertTold, told.Kind, told.Actor, told.Name, string(told.Value), told.Expires)
}

func (t *Tx) LimitTold(kind, actor, now string, newest int) error {
	return t.Change("", nil, limitTold, kind, actor, now, kind, actor, int64(newest-1))
}

func (t *Tx) DropTold(kind, actor, name string) error {
	return t.Change("", nil, "DELETE"+ofTold+" AND name = ?", kind, actor, name)
}
