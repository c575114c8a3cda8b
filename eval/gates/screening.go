package gates

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"pgfsm/policy"
)

// A screenCase is a request. Core is the part of it that must be refused wherever it stands; without one it must pass.
type screenCase struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Core string `json:"core"`
}

// screening holds the input policy (INV-0) with the default rules to requests that must be refused, plainly and in every
// disguise, and to requests that must pass.
func screening(e *evaluation) (Suite, error) {
	cases, err := load[screenCase]("policy_gate")
	if err != nil {
		return Suite{}, err
	}
	b, err := policy.Compile(content())
	if err != nil {
		return Suite{}, err
	}
	got := func(in []byte) string {
		if v := e.subject.screen(b, string(in)); !v.Allows() {
			return string(v.Code)
		}
		return passes
	}
	var trials []trial
	harmful := 0
	for i := range cases {
		c := &cases[i]
		if c.Core == "" {
			trials = append(trials, trial{id: c.ID, want: passes, input: []byte(c.Text), got: got})
			continue
		}
		harmful++
		for _, d := range disguises {
			core := d.apply(c.Core)
			trials = append(trials, trial{
				id: c.ID + "/" + d.name, want: string(policy.CodeInputDenied), input: []byte(d.apply(c.Text)), got: got,
				known: func(in []byte, _ string) bool { return strings.Contains(string(in), core) },
			})
		}
	}
	for _, c := range bounds() {
		c.got = got
		trials = append(trials, c)
	}
	return e.table(fmt.Sprintf("requests: %d that must be refused, each in %d disguises, %d that must pass, and some of odd size or encoding",
		harmful, len(disguises), len(cases)-harmful), trials), nil
}

const passes = "passes"

// bounds are requests whose size or encoding decides.
func bounds() []trial {
	large := func(n int) []byte { return []byte(strings.Repeat("a", n)) }
	return []trial{
		{id: "size_at_the_limit", want: passes, input: large(policy.DefaultInputBytes)},
		{
			id: "size_one_past", want: string(policy.CodeInputTooLarge), input: large(policy.DefaultInputBytes + 1),
			known: func(in []byte, _ string) bool { return len(in) > policy.DefaultInputBytes },
		},
		{id: "not_utf8", want: string(policy.CodeInputNotText), input: []byte("policy \xff"), known: brokenText},
		{id: "half_a_character", want: string(policy.CodeInputNotText), input: []byte("caf\xc3"), known: brokenText},
		{id: "surrogate_as_bytes", want: string(policy.CodeInputNotText), input: []byte("a\xed\xa0\x80b"), known: brokenText},
		{id: "overlong_slash", want: string(policy.CodeInputNotText), input: []byte("..\xc0\xaf"), known: brokenText},
	}
}

func brokenText(in []byte, _ string) bool { return !utf8.Valid(in) }
