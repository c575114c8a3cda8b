package config

import "regexp"

// Bounds of the checkpoints of a ledger's log.
const (
	MaxKeys        = 4
	MaxOriginBytes = 255
	MinEvery       = 1000                  // milliseconds
	MaxEvery       = 31 * 24 * 3600 * 1000 // milliseconds
	DefaultEvery   = 3600 * 1000           // milliseconds
)

// Checkpoints are the settings for signed states of the ledger's log.
type Checkpoints struct {
	Keys   []string // paths of the files with the private keys
	Dir    string   // where the gateway writes checkpoints; empty if it writes none
	Every  int64    // how often, in milliseconds
	Origin string   // the name of a new log; empty if a random one is drawn
}

var originPattern = regexp.MustCompile(`^[!-*,-~]+$`)

var checkpointsShape = &shape{form: object, cross: crossCheckpoints, keys: []key{
	{name: "key", shape: &shape{form: list, min: 1, max: MaxKeys, unique: ".", what: "key", each: filePath,
		alt: &shape{form: text, what: "a path or a list of paths", check: checkPath}},
		doc: "The file with the private key that signs checkpoints, from `pgfsm ledger key new`. A list of files: all of them sign, for the time when a " +
			"new key replaces the old one.",
		example: "pgfsm-log.key"},
	{name: "dir", shape: filePath, example: "checkpoints",
		doc: "The folder where `pgfsm serve` writes signed checkpoints, as `checkpoint-SIZE`. Without this key, it writes none."},
	{name: "every", shape: &shape{form: duration, min: MinEvery, max: MaxEvery}, initial: writeDuration(DefaultEvery),
		doc: "How often `pgfsm serve` writes a checkpoint into `dir`, if the log has grown."},
	{name: "origin", shape: &shape{form: text, max: MaxOriginBytes, match: originPattern, what: "a name of printable ASCII without spaces and +"},
		example: "example.com/pgfsm-log",
		doc: "The name of the log in its checkpoints, for witnesses. The log keeps the name that it was made with. Default: pgfsm draws a name when it " +
			"makes the log."},
}}

// crossCheckpoints refuses a folder for checkpoints that no key would sign.
func crossCheckpoints(j *judge, n *node, path string) {
	if dir := n.member("dir"); dir != nil && n.get("key") == nil {
		j.src.fault(dir.at, join(path, "dir"), "write key: pgfsm-log.key, and make it with pgfsm ledger key new",
			"%s has a dir for checkpoints and no key that signs them", path)
	}
}

// crossLedger refuses checkpoints where there is no ledger.
func crossLedger(j *judge, n *node) {
	if m := n.member("checkpoints"); m != nil && n.get("ledger") == nil {
		j.src.fault(m.at, m.key, `name a ledger, as in ledger: "sqlite:pgfsm.db"`, "checkpoints are of a ledger, and there is none")
	}
}

// checkpoints reads the settings of checkpoints.
func (l *loader) checkpoints() {
	n := l.file.root.get("checkpoints")
	if n == nil {
		return
	}
	c := &l.out.Checkpoints
	c.Every, c.Origin = n.millis("every"), n.str("origin")
	if dir := n.str("dir"); dir != "" {
		c.Dir = l.file.resolve(dir)
	}
	names := n.texts("key")
	if one := n.str("key"); one != "" {
		names = []string{one}
	}
	for _, name := range names {
		c.Keys = append(c.Keys, l.file.resolve(name))
	}
}
