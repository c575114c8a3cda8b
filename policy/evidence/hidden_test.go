package evidence

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/test/check"
)

const between = "Security logs are kept between 10 and 90 days in 400 places."

// Claims that show a number, date or name which between does not hold.
var hiddenNumbers = []struct{ name, claim, code string }{
	{"zero-width-joiner-behind-sign", "Kept -\u200d10 days.", CodeNotStrict},
	{"zero-width-joiner-in-number-word", "Kept sev\u200den days.", CodeNotStrict},
	{"half-width-hangul-filler", "Kept 10\uffa0 90 days.", CodeNotStrict},
	{"full-width-number-word", "Kept ｓｅｖｅｎ days.", CodeUnsupported},
	{"mathematical-number-word", "Kept 𝐬𝐞𝐯𝐞𝐧 days.", CodeUnsupported},
	{"accent-on-number-word", "Kept sevén days.", CodeUnsupported},
	{"cyrillic-letter-in-number-word", "Kept s\u0435ven days.", CodeUnsupported},
	{"greek-letter-in-month", "Since M\u03b1rch.", CodeUnsupported},
	{"arabic-decimal-separator", "Kept 10٫90 days.", CodeUnsupported},
	{"exponent", "Kept 10^90 days.", CodeUnsupported},
	{"full-width-percent", "Kept 10％ of it.", CodeUnsupported},
	{"en-dash-as-sign", "Kept –10 days.", CodeUnsupported},
	{"sign-in-words", "Kept minus 10 days.", CodeUnsupported},
	{"wide-gap-before-scale-word", "Kept 10     million days.", CodeUnsupported},
	{"number-words-with-hyphen", "Kept five\u2010hundred days.", CodeUnsupported},
	{"number-words-with-slash", "Kept five/six days.", CodeUnsupported},
	{"number-words-with-apostrophe", "Kept six'seven days.", CodeUnsupported},
	{"number-word-and-unit", "A ten-day limit.", CodeUnsupported},
	{"ordinal-of-number-words", "On the twenty-fifth.", CodeUnsupported},
	{"long-vowel-mark-as-hyphen", "A ten\u30fcday limit.", CodeUnsupported},
	{"month-behind-joiner", "Since mid-March.", CodeUnsupported},
	{"keycap-of-digit", "Kept 4\u20e300 days.", CodeUnsupported},
}

func TestLock_HiddenNumbers(t *testing.T) {
	for _, tt := range hiddenNumbers {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Lock([]byte(`"`+between+`"`), Summary{[]Item{{Claim: tt.claim, Evidence: between}}})
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Code != tt.code {
				t.Errorf("Lock(%q) = %v, want code %s", tt.claim, err, tt.code)
			}
			if tt.code == CodeNotStrict {
				return
			}
			// A claim may repeat the payload, whatever characters it has.
			own := "It says: " + tt.claim
			doc, err := json.Marshal(own)
			check.NoError(t, err)
			if _, err := Lock(doc, Summary{[]Item{{Claim: own, Evidence: own}}}); err != nil {
				t.Errorf("Lock(%q) = %v, want its own words accepted", own, err)
			}
		})
	}
}

func TestLock_HonestClaims(t *testing.T) {
	for _, claim := range []string{
		between, "Kept 10–90 days.", "Kept 10 to 90 days.", "400 places.", "400 places – 10 of them.", "Places (400).",
		"Plätze: 400.", "Журналы 90.", "Προς 90.", "ログ 90", "Kept 10 × 90.", "A \"k\" or a bn.", "Either m or t.",
		"Tシャツ, 90.", "The café’s 90.", "Read and/or write.", "A one-off, no-one's.", "Even 'often' is well-known.",
		"マイケル・ジャクソン", "迈克尔·杰克逊", "a·b or a・b", "اردو۔ اردو", "Red • green", "A weekend-long May-be.", "R&D‐led",
		"It is ⌚, 🎉.",
	} {
		if _, err := Lock([]byte(`"`+between+`"`), Summary{[]Item{{Claim: claim, Evidence: between}}}); err != nil {
			t.Errorf("Lock(%q) = %v, want it accepted", claim, err)
		}
	}
}

// Invisible characters of the payload may be in evidence between its tokens, but not in a token.
func TestLock_InvisibleInEvidence(t *testing.T) {
	for _, tt := range []struct{ name, value, evidence, code string }{
		{"in-a-word", "او می\u200cخواهد برود 10", "او می\u200cخواهد برود", ""},
		{"in-an-emoji", "see ❤\ufe0f it is 10", "see ❤\ufe0f it is 10", ""},
		{"in-a-number", "kept for 10\u200d90 days", "kept for 10\u200d90 days", CodeNotStrict},
		{"behind-a-sign", "kept for -\u200d10 days", "kept for -\u200d10 days", CodeNotStrict},
		{"in-a-number-word", "kept for sev\u200den days", "kept for sev\u200den days", CodeNotStrict},
		{"in-an-identifier", "see polic\u200cy-9 for it", "see polic\u200cy-9 for it", CodeNotStrict},
		{"cut-before-it", "kept for 10\u200d90 days", "kept for 10", CodeMissing},
		{"cut-before-short-scale", "it costs 10 bn now", "it costs 10", CodeMissing},
		{"cut-behind-minus", "it is minus 10 degrees here", "10 degrees here", CodeMissing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := json.Marshal(tt.value)
			check.NoError(t, err)
			_, err = Lock(doc, Summary{[]Item{{Claim: "A claim.", Evidence: tt.evidence}}})
			var refused *RefusedError
			switch {
			case tt.code == "" && err != nil:
				t.Errorf("Lock(%q) = %v, want it located", tt.evidence, err)
			case tt.code != "" && (!errors.As(err, &refused) || refused.Code != tt.code):
				t.Errorf("Lock(%q) = %v, want code %s", tt.evidence, err, tt.code)
			}
		})
	}
}

// The package comment lists these cases as not checked.
func TestLock_WhatRemains(t *testing.T) {
	for _, claim := range []string{
		"Kept fourhundred days.", "On the fifth.", "Kept a gross of days.", "Half a decade.", "Kept nil days.",
		"Read localhost/login.", "At example dot com.", "At e.v.i.l.", "Kept ⠼⠁ days.", "A 🎲 or ☝.", "Thousands of places.",
		"Kept siebzig days.", "Kept sevn days.", "Kept xiv days.", "Kept se\u1d20en days.", "Kept - 10 days.",
		"Kept 10\u200990 days.", "Kept 玖拾 days.", "Kept 💯 days.", "Kept ⚅ days.", "Since 🕐.", "It is 🥇.",
		"See http:⧸⧸evil.", "See evil۔com.", "See evil・com.", "Kept \u0455\u0435\u0475\u0435\u0578 days.",
		"Kept 10 | 90.", "Kept 10 kg.", "\u0455\u0456\u0445 days.",
	} {
		if _, err := Lock([]byte(`"`+between+`"`), Summary{[]Item{{Claim: claim, Evidence: between}}}); err != nil {
			t.Errorf("Lock(%q) = %v, which is better than the package comment says", claim, err)
		}
	}
}
