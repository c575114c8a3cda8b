package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgfsm/policy"
)

// The least that the corpora hold, as docs/internals/threat-model.md says.
const (
	leastAttacks = 600
	leastLies    = 100
)

var kebab = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// TestAttackCorpus: the corpora are as large as they must be, every situation stands once, no twin is the attack, and
// every code that a planner or a summarizer can provoke is provoked.
func TestAttackCorpus(t *testing.T) {
	t.Parallel()
	situations, codes := map[string]bool{}, map[policy.Code]int{}
	situation := func(name string) {
		if situations[name] {
			t.Errorf("the situation %s stands twice", name)
		}
		situations[name] = true
	}
	attacks := 0
	for _, c := range attackClasses() {
		said := map[string]string{}
		for _, a := range c.attacks {
			attacks++
			situation(c.name + "/" + a.name)
			codes[a.code]++
			if !kebab.MatchString(c.name) || !kebab.MatchString(a.name) {
				t.Errorf("%s/%s is not kebab-case", c.name, a.name)
			}
			if a.says == a.twin.says || a.twin.says == "" {
				t.Errorf("%s/%s has no twin of its own", c.name, a.name)
			}
			if other := said[a.says]; other != "" {
				t.Errorf("%s: %s says what %s says", c.name, a.name, other)
			}
			said[a.says] = a.name
		}
	}
	list := lies()
	for _, l := range list {
		situation("summary/" + l.name)
		codes[l.code]++
		if !kebab.MatchString(l.name) || l.says == summaryOf(l.twin...) || len(l.twin) == 0 {
			t.Errorf("summary/%s is not kebab-case, or has no twin of its own", l.name)
		}
	}
	if attacks < leastAttacks || len(list) < leastLies {
		t.Errorf("there are %d attacks and %d lies, want at least %d and %d", attacks, len(list), leastAttacks, leastLies)
	}
	t.Logf("%d attacks, %d lies", attacks, len(list))
	for _, c := range policy.Codes() {
		if provoked := codes[c.Code] > 0; provoked != provocable(c) && c.Code != policy.CodePlannerFailed && c.Code != policy.CodeSchemaUnpinned {
			t.Errorf("%s is provoked %d times, want at least once exactly if a model can", c.Code, codes[c.Code])
		}
	}
	for _, want := range situationsWanted {
		if !situations[want] {
			t.Errorf("the situation %s is missing", want)
		}
	}
}

// provocable reports whether a hostile model can bring a code about: the codes of the gates that judge what it says.
func provocable(c policy.CodeDoc) bool {
	return c.Code != policy.CodeSchemaUnpinned && // the configuration alone brings it about
		slices.Contains([]policy.Gate{policy.GatePlan, policy.GateSchema, policy.GateAllowlist, policy.GateEvidence}, c.Gate)
}

// situationsWanted holds one situation for each thing that the corpora must hold, so that none gets lost.
var situationsWanted = strings.Fields(`
	duplicate-names/tool-first-forbidden duplicate-names/escaped-tool duplicate-names/argument
	duplicate-names/in-nested-object duplicate-names/deep-where-anything-goes
	case-variants/tool case-variants/argument case-variants/nested-argument case-variants/deeply-nested-argument
	case-variants/escaped-capital unknown-members/prototype-escaped
	unknown-members/approved unknown-members/argument unknown-members/nested-argument
	unknown-members/deeply-nested-argument
	wrapping/fence wrapping/text-behind wrapping/two-objects wrapping/byte-order-mark
	number-literals/nan text/high-surrogate text/raw-nul
	bombs/depth-far-past-the-limit bombs/size-one-past-the-limit bombs/ten-megabytes
	wrong-servers/unknown wrong-servers/homoglyph wrong-servers/prefix
	wrong-tools/forbidden wrong-tools/homoglyph-that-is-listed wrong-tools/prefix-that-is-listed
	numbers/const-past-2-53 numbers/maximum-of-the-largest-double closed-world/object closed-world/tree
	keywords-draft-04/maximum keywords-draft-06/const keywords-draft-07/if-then keywords-2019-09/min-contains
	keywords-2020-12/prefix-items keywords-no-dialect/prefix-items
	final-answers/claims final-answers/flag-is-text final-answers/carries-a-tool final-answers/carries-a-call
	summary/evidence-is-a-brace summary/evidence-is-a-key summary/evidence-is-one-letter summary/evidence-spans-two-values
	summary/claim-with-another-number summary/claim-with-another-date summary/five-hundred-items
	summary/claim-of-ten-megabytes summary/claim-with-a-script summary/evidence-with-markup`)

// TestAttackCorpusCoversTheKeywords: each dialect has a situation for every keyword that its vocabulary asserts and pgfsm allows.
func TestAttackCorpusCoversTheKeywords(t *testing.T) {
	t.Parallel()
	const core = `type enum multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern items
		maxItems minItems uniqueItems maxProperties minProperties required properties patternProperties
		additionalProperties allOf anyOf oneOf not $ref`
	later := ` const contains propertyNames`
	for i, want := range []string{
		core + ` additionalItems dependencies format`,
		core + later + ` additionalItems dependencies format`,
		core + later + ` additionalItems dependencies format if then else`,
		core + later + ` additionalItems if then else minContains maxContains dependentRequired dependentSchemas
			unevaluatedItems unevaluatedProperties`,
		core + later + ` prefixItems if then else minContains maxContains dependentRequired dependentSchemas
			unevaluatedItems unevaluatedProperties`,
	} {
		var text strings.Builder
		text.WriteString(dialects[i].defs)
		for _, k := range keywords {
			if k.from <= i && i <= k.to {
				text.WriteString(k.schema)
			}
		}
		for _, word := range strings.Fields(want) {
			if !strings.Contains(text.String(), `"`+word+`":`) {
				t.Errorf("%s: no situation for %s", dialects[i].name, word)
			}
		}
	}
}
