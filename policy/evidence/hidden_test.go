package evidence

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

const between = "Security logs are kept between 10 and 90 days in 400 places."

// Claims that show a number, date or name which between does not hold.
var hiddenNumbers = []struct{ name, claim, code string }{
	{"zero-width-joiner-in-number", "Kept 10\u200d90 days.", CodeNotStrict},
	{"zero-width-non-joiner-in-number", "Kept 10\u200c90 days.", CodeNotStrict},
	{"zero-width-joiner-behind-sign", "Kept -\u200d10 days.", CodeNotStrict},
	{"zero-width-joiner-before-unit", "Kept 10\u200d%.", CodeNotStrict},
	{"zero-width-joiner-in-number-word", "Kept sev\u200den days.", CodeNotStrict},
	{"zero-width-joiner-in-month", "Since Mar\u200dch.", CodeNotStrict},
	{"grapheme-joiner-in-number-word", "Kept sev\u034fen days.", CodeNotStrict},
	{"variation-selector-behind-number-word", "Kept seven\ufe0f days.", CodeNotStrict},
	{"mongolian-variation-selector", "Kept sev\u180ben days.", CodeNotStrict},
	{"hangul-filler-in-number-word", "Kept sev\u115fen days.", CodeNotStrict},
	{"half-width-hangul-filler", "Kept 10\uffa0 90 days.", CodeNotStrict},
	{"private-use-in-number", "Kept 10\ue00090 days.", CodeNotStrict},
	{"unassigned-in-number", "Kept 10\u037890 days.", CodeNotStrict},
	{"noncharacter-in-number", "Kept 10\uffff90 days.", CodeNotStrict},
	{"full-width-number-word", "Kept ｓｅｖｅｎ days.", CodeUnsupported},
	{"mathematical-number-word", "Kept 𝐬𝐞𝐯𝐞𝐧 days.", CodeUnsupported},
	{"accent-on-number-word", "Kept sevén days.", CodeUnsupported},
	{"cyrillic-letter-in-number-word", "Kept s\u0435ven days.", CodeUnsupported},
	{"greek-letter-in-month", "Since M\u03b1rch.", CodeUnsupported},
	{"cyrillic-and-armenian-letters", "Kept \u0455\u0435\u0475\u0435\u0578 days.", CodeUnsupported},
	{"full-width-full-stop", "Kept 10．90 days.", CodeUnsupported},
	{"one-dot-leader", "Kept 10․90 days.", CodeUnsupported},
	{"middle-dot", "Kept 10·90 days.", CodeUnsupported},
	{"arabic-decimal-separator", "Kept 10٫90 days.", CodeUnsupported},
	{"fraction-slash", "Kept 10⁄90 days.", CodeUnsupported},
	{"division-slash", "Kept 10∕90 days.", CodeUnsupported},
	{"exponent", "Kept 10^90 days.", CodeUnsupported},
	{"product", "Kept 10*90 days.", CodeUnsupported},
	{"full-width-product", "Kept 10＊90 days.", CodeUnsupported},
	{"full-width-comma", "Kept 10，90 days.", CodeUnsupported},
	{"full-width-percent", "Kept 10％ of it.", CodeUnsupported},
	{"arabic-percent", "Kept 10٪ of it.", CodeUnsupported},
	{"hyphen", "Kept 10\u201090 days.", CodeUnsupported},
	{"unbreakable-hyphen", "Kept 10\u201190 days.", CodeUnsupported},
	{"en-dash-as-sign", "Kept –10 days.", CodeUnsupported},
	{"full-width-sign", "Kept －10 days.", CodeUnsupported},
	{"superscript-sign", "Kept ⁻10 days.", CodeUnsupported},
	{"sign-in-words", "Kept minus 10 days.", CodeUnsupported},
	{"hair-space", "Kept 10\u200a90 days.", CodeUnsupported},
	{"thin-space", "Kept 10\u200990 days.", CodeUnsupported},
	{"wide-gap-before-scale-word", "Kept 10     million days.", CodeUnsupported},
	{"short-billion", "Kept 10 bn days.", CodeUnsupported},
	{"short-thousand", "Kept 10 k days.", CodeUnsupported},
	{"capital-million", "Kept 10 M days.", CodeUnsupported},
	{"plural-scale-word", "Kept 10 hundreds of days.", CodeUnsupported},
	{"short-percent", "Kept 10 pct of it.", CodeUnsupported},
	{"han-numerals", "九十 days.", CodeUnsupported},
	{"financial-han-numerals", "玖拾 days.", CodeUnsupported},
	{"han-scale", "Kept 10 万 days.", CodeUnsupported},
	{"squared-day", "On ㏤.", CodeUnsupported},
	{"circled-number", "Kept ⑩ days.", CodeUnsupported},
	{"superscript-behind-number", "Kept 10² days.", CodeUnsupported},
	{"digits-of-another-script", "Kept ４００ days.", CodeUnsupported},
	{"number-words-with-hyphen", "Kept five\u2010hundred days.", CodeUnsupported},
	{"number-words-with-unbreakable-hyphen", "Kept twenty\u2011one days.", CodeUnsupported},
	{"number-words-with-slash", "Kept five/six days.", CodeUnsupported},
	{"number-words-with-fraction-slash", "Kept five⁄six days.", CodeUnsupported},
	{"number-words-with-middle-dot", "Kept five·six days.", CodeUnsupported},
	{"number-words-with-plus", "Kept two+three days.", CodeUnsupported},
	{"number-words-with-apostrophe", "Kept six'seven days.", CodeUnsupported},
	{"number-words-with-ampersand", "Kept six&seven days.", CodeUnsupported},
	{"number-word-and-unit", "A ten-day limit.", CodeUnsupported},
	{"number-word-and-unit-unbreakable", "A two\u2011week limit.", CodeUnsupported},
	{"scale-word-and-unit", "A million-dollar limit.", CodeUnsupported},
	{"number-word-owns", "A seven's limit.", CodeUnsupported},
	{"ordinal-of-number-words", "On the twenty-fifth.", CodeUnsupported},
	{"modifier-letter-behind-number-word", "Kept seven\u02bc days.", CodeUnsupported},
	{"saltillo-behind-number-word", "Kept seven\ua78c days.", CodeUnsupported},
	{"visarga-behind-number-word", "Kept seven\u0903 days.", CodeUnsupported},
	{"long-vowel-mark-as-hyphen", "A ten\u30fcday limit.", CodeUnsupported},
	{"month-behind-joiner", "Since mid-March.", CodeUnsupported},
	{"months-with-slash", "Since April/June.", CodeUnsupported},
	{"month-owns", "Since March's end.", CodeUnsupported},
	{"hundred-points", "Kept 💯 days.", CodeUnsupported},
	{"keycap-ten", "Kept 🔟 days.", CodeUnsupported},
	{"keycap-of-digit", "Kept 4\u20e300 days.", CodeUnsupported},
	{"keycap-of-two-digits", "Kept 9\u20e30\u20e3 days.", CodeUnsupported},
	{"die", "Kept ⚅ days.", CodeUnsupported},
	{"dice", "Kept ⚅⚀ days.", CodeUnsupported},
	{"playing-card", "Kept 🂪 days.", CodeUnsupported},
	{"domino", "Kept 🀸 days.", CodeUnsupported},
	{"mahjong-tile", "Kept 🀏 days.", CodeUnsupported},
	{"clock", "Since 🕐.", CodeUnsupported},
	{"calendar", "Since 📅.", CodeUnsupported},
	{"medal", "It is 🥇.", CodeUnsupported},
	{"turned-digit", "Kept ↊ days.", CodeUnsupported},
	{"circled-zero", "Kept \U0001f10d days.", CodeUnsupported},
	{"squared-sound", "Kept 🆢 days.", CodeUnsupported},
	{"number-symbol-behind-number", "Kept 10💯 days.", CodeUnsupported},
	{"han-two-hundred", "Kept 皕 days.", CodeUnsupported},
	{"han-two", "Kept 弍 days.", CodeUnsupported},
	{"han-three", "Kept 弎 days.", CodeUnsupported},
	{"han-three-of-them", "Kept 仨 days.", CodeUnsupported},
	{"han-both", "Kept 俩 days.", CodeUnsupported},
	{"han-pair", "Kept 双.", CodeUnsupported},
	{"han-half", "Kept 半.", CodeUnsupported},
	{"fraction-slashes-of-address", "See http:⁄⁄evil.", CodeUnsupported},
	{"division-slashes-of-address", "See http:∕∕localhost.", CodeUnsupported},
	{"big-slash-of-address", "See http:⧸⧸evil.", CodeUnsupported},
	{"double-slash-of-address", "See http:⫽evil.", CodeUnsupported},
	{"set-minus-as-backslash", "See ∖∖evil.", CodeUnsupported},
	{"arabic-full-stop", "See evil۔com.", CodeUnsupported},
	{"katakana-middle-dot", "See evil・com.", CodeUnsupported},
	{"half-width-katakana-middle-dot", "See evil･com.", CodeUnsupported},
	{"syriac-full-stop", "See evil܁com.", CodeUnsupported},
	{"raised-dot", "See evil⸳com.", CodeUnsupported},
	{"sinological-dot", "See evilꞏcom.", CodeUnsupported},
	{"kharoshthi-dot", "See evil𐩐com.", CodeUnsupported},
	{"augmentation-dot", "See evil\U0001d16dcom.", CodeUnsupported},
	{"middle-dot-of-address", "See t·co.", CodeUnsupported},
	{"greek-dot-of-address", "See evil\u0387com.", CodeUnsupported},
	{"dot-operator-of-address", "See evil⋅com.", CodeUnsupported},
	{"bullet-of-address", "See evil•com.", CodeUnsupported},
	{"odd-dot-between-full-width-letters", "See ｅｖｉｌ۔ｃｏｍ.", CodeUnsupported},
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
			if err != nil {
				t.Fatal(err)
			}
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
		{"in-a-month", "kept since Mar\u034fch last", "kept since Mar\u034fch last", CodeNotStrict},
		{"in-an-identifier", "see polic\u200cy-9 for it", "see polic\u200cy-9 for it", CodeNotStrict},
		{"cut-before-it", "kept for 10\u200d90 days", "kept for 10", CodeMissing},
		{"cut-behind-it", "kept for 10\u00ad90 days", "90 days", CodeTooShort},
		{"cut-before-soft-hyphen", "kept for 10\u00ad90 days", "kept for 10", CodeMissing},
		{"cut-before-full-width-scale", "it costs 10 ｍｉｌｌｉｏｎ now", "it costs 10", CodeMissing},
		{"cut-before-short-scale", "it costs 10 bn now", "it costs 10", CodeMissing},
		{"cut-behind-minus", "it is minus 10 degrees here", "10 degrees here", CodeMissing},
		{"cut-before-han-scale", "it costs 10 万 now", "it costs 10", CodeMissing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := json.Marshal(tt.value)
			if err != nil {
				t.Fatal(err)
			}
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
		"Kept 10 | 90.", "Kept 10 kg.", "\u0455\u0456\u0445 days.",
	} {
		if _, err := Lock([]byte(`"`+between+`"`), Summary{[]Item{{Claim: claim, Evidence: between}}}); err != nil {
			t.Errorf("Lock(%q) = %v, which is better than the package comment says", claim, err)
		}
	}
}

// The package comment names every character that has a meaning here.
func TestPackageCommentIsComplete(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range joiners + dots + asciiDots + slashes + signs + minuses + unitsClose + cjkNumbers {
		if !strings.ContainsRune(string(doc), r) && !strings.Contains(string(doc), fmt.Sprintf("%U", r)) {
			t.Errorf("doc.go does not name %U %c", r, r)
		}
	}
	named := func(r rune) bool { return strings.Contains(string(doc), fmt.Sprintf("%U", r)) }
	check := func(lo, hi rune) {
		if lo == hi && named(lo) || named(lo) && named(hi) {
			return
		}
		for r := lo; r <= hi; r++ {
			between := '⚀' <= r && r <= '⚅'
			if !strings.ContainsRune(string(doc), r) && !between {
				t.Errorf("doc.go does not name the number %U %c", r, r)
			}
		}
	}
	for _, r := range numberSymbols.R16 {
		check(rune(r.Lo), rune(r.Hi))
	}
	for _, r := range numberSymbols.R32 {
		check(rune(r.Lo), rune(r.Hi))
	}
}
