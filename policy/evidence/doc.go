// Package evidence checks summaries against the typed payload (INV-5): a summary passes only if
// each of its items quotes the payload word for word and the quotation can be located.
//
// The check does not prove entailment. It guarantees that the quoted words are in the payload, that
// they were not cut out of the middle of a word or token, and that they contain each number, date
// and identifier of the claim, as defined below. It does not guarantee that the claim follows from
// them.
//
// # A summary
//
// A summary is one strict JSON object {"items":[{"claim":"…","evidence":"…"}]}: 1 to [MaxItems]
// items, no other members, at most [MaxSummaryBytes] bytes. A claim is not blank and has at most
// [MaxClaimBytes] bytes, evidence is not empty and has at most [MaxEvidenceBytes]. [Schema] says
// the same in JSON Schema, and [Parse] applies both.
//
// Neither text may contain the beginning of an HTML tag ("<" directly before a letter, "/", "!" or
// "?"), or the middle of a Markdown link ("](").
//
// An invisible character is one of general category Cf (bidi controls, zero-width joiners, soft
// hyphens, tags), with the property Variation_Selector, or with Other_Default_Ignorable_Code_Point
// (the grapheme joiner, fillers). A claim may contain none of them, and only graphic characters:
// letters, marks, numbers, punctuation, symbols and spaces, so no control characters, U+2028,
// U+2029, private use or unassigned code points. This refuses claims in languages that use U+200C
// or U+200D, and emoji with a variation selector.
//
// Evidence may contain tab, line feed and carriage return, since payloads do, but no other control
// characters, U+2028 or U+2029, no Cf but U+200C and U+200D, and no supplementary variation
// selectors (U+E0100 to U+E01EF). The remaining invisible characters may not be in one of its
// tokens.
//
// # Where evidence is found
//
// The payload is read in document order. Evidence is found in a string value in one of three cases:
// it is the whole value; it is a whole part of the value and its two ends are clean; or it is a
// substring of the value with at least [MinWords] words and its two ends are clean. It is found in
// a number, true or false if it is the whole literal. Member names and null are never evidence, and
// neither is text without a letter or a number. The first place in document order, and in a value
// the first offset, is reported.
//
// A value has three kinds of parts, each without the spaces, tabs and carriage returns at its ends:
//
//   - a line: the text between two line feeds, or between a line feed and an end of the value.
//   - a bullet: the rest of a line that begins with a list marker and a space or tab. A marker is "-", "*", "+" or "•", or
//     one to nine digits 0 to 9 with "." or ")" behind them.
//   - a cell: the text between two bars "|" of a line that begins and ends with a bar. A bar behind a backslash is text.
//
// A part with other markup is quoted with it: "**Mask emails**" for a bullet in bold. A sentence
// that is wrapped over several lines has parts too, so one of its lines can be quoted without the
// others.
//
// A word, for counting, is a maximal run without white space that has a letter or a number; a Han
// or Hiragana character is a word of its own (as in UAX #29).
//
// An end is clean if it lies neither inside a chunk nor inside a token of the value, both of the
// value as it is written and as it is read (see Tokens). The 64 bytes on either side of it decide.
// Of one piece of evidence, the first 1,000 places in the payload are tried; if none of them has
// clean ends, the item is refused, even if the next would pass. So the work is linear in the
// payload.
//
// # Chunks
//
// A number is a character of general category N or one of 零一二三四五六七八九十百千万萬亿億兆两兩. A word character is
// a letter (L), a mark (M), a number, "_" or an invisible character.
//
// A chunk is a maximal run of word characters with single joiners, each directly between two word
// characters: any of
// - . : / @ + & ' ’ ^ · ⁄ ∕ ٫ ٬ U+2010 U+2011, and between two numbers also , * × ÷. A chunk that
// begins with a number takes up to two signs or currency symbols directly before it (- + − ± and
// Sc; unless directly behind another chunk also any dash, Pd); one that ends with a number takes
// one of % ‰ ‱ ٪ ° or a currency symbol directly behind it, or % ‰ ‱ ٪ behind one space. So "-5",
// "$10", "10.5", "1,000", "10%", "policy-002" and "bob@example.com" are one chunk each. The parts
// of a chunk are what lies between its joiners, its names the runs of Latin letters in it.
// Invisible characters keep a chunk together and do not count otherwise.
//
// # Tokens
//
// A chunk is of the first class that fits. (Letters are compared in lower case unless said
// otherwise.)
//
//   - date: YYYY-MM, YYYY-MM-DD (also with / and, with three parts, with dots; also followed by T and a time),
//     D-M-YY to DD-MM-YYYY (also with / or .), H:MM to HH:MM:SS.
//   - number: all its word characters are numbers.
//   - identifier: it has a number.
//   - number: it has names, and each is a number word (zero, two … twenty, thirty … ninety, dozen, and the scale words
//     hundred, thousand, million, billion, trillion; "one" only beside another number word): twenty-one, five/six.
//   - date: a whole month name with a capital first letter, except May.
//   - identifier: it has "_", "@" or ":"; or is directly behind a slash or backslash (https://localhost, /etc/passwd); or a dot
//     with two word characters or more beside it (example.com, t.co/x, but not e.g.); or a part with a capital letter that is not
//     its first letter (PII, mcpServers); or letters of two of the alphabets Latin, Greek and Cyrillic.
//   - number: one of its names is a number word, and not "one" (ten-day).
//   - date: one of its names is a month name as above (mid-March, March's).
//
// Then chunks that white space alone separates (at most three characters of it) are joined into one
// token:
//
//   - [D] month [D] [YYYY] or month YYYY, with month a name or its usual three-letter form ("Sept" too), D a chunk of
//     one or two digits, also with st, nd, rd or th, and with a comma allowed before the white space: "3 March 2024",
//     "March 3rd, 2024".
//   - a number of one to three digits and groups of exactly three: "10 000".
//   - a number and the words behind it: number words, "percent", "pct", the short scales k, m, mn, bn, tn, lakh and crore and the
//     plurals (dozens, hundreds … trillions), which are no tokens elsewhere; number words among themselves, and "and" between a
//     scale word and a number word: "10 million", "5 bn", "two hundred and five".
//   - "minus" and such a number.
//
// A token of a claim is supported if one token of the same class in the evidence is the same:
// identifiers byte for byte, dates and numbers in lower case with white space runs made one space.
// Nothing is converted: "2" does not support "two", nor "1,000" "1000", and a token never supports
// a part of itself ("10" is not supported by "100", "10%", "10 million" or "3-10").
//
// Tokens are compared twice: of claim and evidence as they are written, and of both as they are
// read. A text is read after compatibility decomposition (UAX #15, NFKD), without nonspacing and
// enclosing marks and invisible characters, and, when tokens are compared, with each run of white
// space made one space. So "ｓｅｖｅｎ" and "10％" count as what they look like, and "10²" is still not
// "102".
//
// # What is not checked
//
// The following are not tokens, and so may be missing from the evidence:
//
//   - ordinals ("fifth"), fractions, other words for a number ("half", "gross", "decade", "nil", "per cent"), scale words in the
//     plural without a number before them, groups that thin spaces separate other than by threes, and number words that are run
//     together, misspelled or not English;
//   - numerals that are letters (Roman "xiv", financial Han numerals), and pictures of numbers (💯, ⚅, 🕐, 🥇, braille);
//   - a word wholly in letters of one alphabet that looks like a word in another, and look-alikes inside one alphabet;
//   - addresses whose dot or slash is not "." or "/" (evil。com, http:⧸⧸evil) or is described ("example dot com"), words joined by
//     "/" ("and/or", and so "localhost/login"), and dots between single letters ("e.g.").
//
// Units other than those above ("days", "kg", "am") do not belong to a number, nor does a sign
// apart from it, and a claim may put numbers of the evidence side by side with other marks than
// joiners between them ("10–90", "10 | 90").
package evidence
