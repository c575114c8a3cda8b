package evidence

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTokens(t *testing.T) {
	n, d, id := Number, Date, Identifier
	type tok struct {
		Class Class
		Text  string
	}
	tests := []struct {
		name, in string
		want     []tok
	}{
		{"none", "Personal data must never, and/or it's a well-known e.g. case.", nil},
		{"numbers", "1 10.5 1,000 1'000 007 ½ ٣",
			[]tok{{n, "1"}, {n, "10.5"}, {n, "1,000"}, {n, "1'000"}, {n, "007"}, {n, "½"}, {n, "٣"}}},
		{"signs", "-5 (+6) −7 ±8 a -9", []tok{{n, "-5"}, {n, "+6"}, {n, "−7"}, {n, "±8"}, {n, "-9"}}},
		{"money", "$10 10€ -£5 ¥ 6", []tok{{n, "$10"}, {n, "10€"}, {n, "-£5"}, {n, "6"}}},
		{"units", "10% 5 % 20° 3‰", []tok{{n, "10%"}, {n, "5 %"}, {n, "20°"}, {n, "3‰"}}},
		{"groups", "10 000 rows 1 234 567.8 10 00 1000 000",
			[]tok{{n, "10 000"}, {n, "1 234 567.8"}, {n, "10"}, {n, "00"}, {n, "1000"}, {n, "000"}}},
		{"scale", "10 million, 3.5 billion dollars, 5 percent of",
			[]tok{{n, "10 million"}, {n, "3.5 billion"}, {n, "5 percent"}}},
		{"dates", "2024-03-01 2024/3/1 2024-03 01.02.2024 1/2/24 10:30 9:05:59 2024-03-01T10:30:00Z",
			[]tok{{d, "2024-03-01"}, {d, "2024/3/1"}, {d, "2024-03"}, {d, "01.02.2024"}, {d, "1/2/24"},
				{d, "10:30"}, {d, "9:05:59"}, {d, "2024-03-01T10:30:00Z"}}},
		{"month-names", "3 March 2024; March 3rd, 2024; mar 2024; 1st May; in April; march on; JUNE or July, MAY or Sept",
			[]tok{{d, "3 March 2024"}, {d, "March 3rd, 2024"}, {d, "mar 2024"}, {d, "1st May"},
				{d, "April"}, {d, "JUNE"}, {d, "July"}, {id, "MAY"}}},
		{"identifiers", "INC0010023 policy-002 v1.2.3 doc_id mcpServers GDPR a@b.c example.com C3PO ns:name",
			[]tok{{id, "INC0010023"}, {id, "policy-002"}, {id, "v1.2.3"}, {id, "doc_id"},
				{id, "mcpServers"}, {id, "GDPR"}, {id, "a@b.c"}, {id, "example.com"}, {id, "C3PO"}, {id, "ns:name"}}},
		{"not-identifiers", "A Word, Well-Known, and/or, e.g., R&D, don't, Müller", nil},
		{"addresses", "see t.co/abc, www.x.com, evil.example/a/login or a.evil.example",
			[]tok{{id, "t.co/abc"}, {id, "www.x.com"}, {id, "evil.example/a/login"}, {id, "a.evil.example"}}},
		{"number-words-in-chunks", "five/six, ten-day Two‑week one-off zero.day twenty‐one million PII-ten",
			[]tok{{n, "five/six"}, {n, "ten-day"}, {n, "Two‑week"}, {id, "zero.day"}, {n, "twenty‐one million"},
				{id, "PII-ten"}}},
		{"months-in-chunks", "mid-March April/June june-july May/may", []tok{{d, "mid-March"}, {d, "April/June"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []tok
			for _, token := range Tokens(tt.in) {
				got = append(got, tok{token.Class, token.Text})
				if tt.in[token.Start:token.End] != token.Text {
					t.Errorf("token %q is at %q", token.Text, tt.in[token.Start:token.End])
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Tokens(%q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}
