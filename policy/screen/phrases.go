package screen

import "strings"

// What stands between two words of one sentence.
const between = `[^\w.;:?!]+`

// The words that excuse a request, in the group that keeps it from counting. A word stands for all that begin with it, with a dot behind it
// for itself only.
var (
	excuseBefore = words(`prevent detect attempt against. protect attacker hackers adversar criminal intruder prohibit
		forbid who. tries. tried. defend`)
	excuseWithin = words(`about. against. on. from. help. ban. regarding concerning report ticket summar polic guid train
		detect prevent protect anti avoid stop. block remov rid. defen mitigat incident document aware respon recover
		alert analy scan rule. rules. question article presentation procedure checklist overview mention search audit
		standard faq log. logs. assess review plan. request. learn. know.`)
	excuseBehind = words(`polic aware train inciden respon prevent protect detect defen mitigat remediat recover report scan
		filter analy alert assess audit complian standard procedur guid playbook runbook control risk simulat test. tests.
		testing ticket case. cases. documentation article question faq quiz poster slide presentation newsletter checklist register
		inventor exception rotat manage storage vault handl review summar statistic trend insurance remov clean triag
		investigat escalat hotlin helplin plan. plans. drill exercise requirement rule. rules. metric dashboard section chapter
		workshop course. webinar intelligence threat submi outbreak attempt expir reset length complex histor hygien
		screening ban. bans. safety declaration permit. permits. check. checks. bounty prohibit forbidden`)
)

func words(list string) string {
	var exact, begin []string
	for _, w := range strings.Fields(list) {
		if e, ok := strings.CutSuffix(w, "."); ok {
			exact = append(exact, e)
		} else {
			begin = append(begin, w)
		}
	}
	return `(?:` + strings.Join(exact, "|") + `)\b|(?:` + strings.Join(begin, "|") + `)\w*`
}

// anyOf returns a pattern for one of the space-separated alternatives; "_" stands for an optional space or hyphen, "~" for one of
// these.
func anyOf(alternatives string) string {
	p := strings.Join(strings.Fields(alternatives), "|")
	return "(?:" + strings.NewReplacer("_", `[ \-]?`, "~", `[ \-]`).Replace(p) + ")"
}

// near is up to three words between verb and object, and far is up to five that may excuse. Both begin with the article that sticks to a verb
// spelled with spaces ("w r i t e a").
const near = `a?(?:` + between + `\w+){0,3}?(?:` + between + `)?`

func far(group string) string {
	return `a?(?:` + between + `(?:(?P<but_` + group + `>` + excuseWithin + `)|\w+)){0,5}?(?:` + between + `)?`
}

// requests joins alternatives "verb … object" to the pattern of a rule: words before the verb and behind the object may excuse.
func requests(alternatives ...string) string {
	return `(?:\b(?:(?P<but_before>` + excuseBefore + `)[^\w.;:?!,]+(?:\w+[^\w.;:?!,]+){0,2}?)?)\b(?:` +
		strings.Join(alternatives, "|") + `)\b(?:[ \-/&]+(?P<but_behind>` + excuseBehind + `))?`
}
