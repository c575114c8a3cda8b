// Package evidence is the lock on summaries (INV-5): a summary passes only if each of its items quotes the typed
// payload word for word, and the quotation can be pointed at.
//
// It is a lock on evidence, not a proof of entailment. It guarantees that the quoted words are there, that they were
// not cut out of the middle of something, and that no number, date or identifier in the claim is missing from them.
// It does not guarantee that the claim follows from them.
//
// # A summary
//
// A summary is one strict JSON object {"items":[{"claim":"…","evidence":"…"}]}: 1 to [MaxItems] items, no other
// members, at most [MaxSummaryBytes] bytes. A claim is not blank and has at most [MaxClaimBytes] bytes, evidence is not
// empty and has at most [MaxEvidenceBytes]. [Schema] is the same in JSON Schema, and both must agree ([Parse]).
//
// Neither text may hold control characters (evidence may hold tab, line feed and carriage return, since payloads do),
// U+2028, U+2029, format characters (general category Cf: bidi controls, invisible characters, tags) other than the
// two joiners U+200C and U+200D, supplementary variation selectors (U+E0100 to U+E01EF), anything that opens an HTML
// tag ("<" directly before a letter, "/", "!" or "?"), or the middle of a Markdown link ("](").
//
// # Where evidence stands
//
// The payload is read in document order. Evidence stands in a string value if it is the whole value, or if it is a
// substring of it with at least [MinWords] words whose two ends are clean. It stands in a number, true or false if it
// is the whole literal. Member names and null are never evidence, and neither is text without a letter or a number.
// The first place in document order, and in a value the first offset, is the one that is reported.
//
// A word, for counting, is a maximal run without white space that holds a letter or a number; a Han or
// Hiragana character is a word of its own (as in UAX #29).
//
// An end is clean if it lies neither inside a chunk nor inside a token of the value.
//
// # Chunks
//
// A word character is a letter (L), mark (M), number (N) or "_". A chunk is a maximal run of word characters in which
// single joiners may stand, each directly between two word characters: any of - . : / @ + & ' ’, and between two
// numbers also the comma. A chunk that begins with a number takes up to two signs or currency symbols directly before
// it (- + − ± and Sc); one that ends with a number takes one of % ‰ ° or a currency symbol directly behind it, or %
// or ‰ behind one space. So "-5", "$10", "10.5", "1,000", "10%", "policy-002" and "bob@example.com" are one chunk
// each. The parts of a chunk are what lies between its joiners.
//
// # Tokens
//
// A chunk is of the first class that fits. (Letters are compared in lower case unless said otherwise.)
//
//   - date: YYYY-MM, YYYY-MM-DD (also with / and, with three parts, with dots; also followed by T and a time),
//     D-M-YY to DD-MM-YYYY (also with / or .), H:MM to HH:MM:SS.
//   - number: all its word characters are numbers (N).
//   - identifier: it holds a number.
//   - number: each part is a number word (zero, two … twenty, thirty … ninety, hundred, thousand, million, billion,
//     trillion, dozen; "one" only beside another number word).
//   - date: a whole month name with a capital first letter, except May.
//   - identifier: it holds "_", "@" or ":"; or a dot between parts of at least two letters; or a part with a capital
//     letter that is not its first letter (PII, mcpServers).
//
// Then chunks that white space alone separates (at most three characters of it) are joined into one token:
//
//   - [D] month [D] [YYYY] or month YYYY, with month a name or its usual three-letter form ("Sept" too), D a chunk of
//     one or two digits, also with st, nd, rd or th, and with a comma allowed before the white space: "3 March 2024",
//     "March 3rd, 2024".
//   - a number of one to three digits and groups of exactly three: "10 000".
//   - a number and the number words, "percent" and "per cent" behind it, number words among themselves, and "and"
//     between a scale word and a number word: "10 million", "two hundred and five".
//
// A token of a claim is supported if one token of the same class in the evidence is the same: identifiers byte for
// byte, dates and numbers in lower case with white space runs made one space. Nothing is converted: "2" does not
// support "two", nor "1,000" "1000", and a token never supports a part of itself ("10" is not supported by "100",
// "10%", "10 million" or "3-10").
package evidence
