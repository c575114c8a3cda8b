// Package origin finds where each value of a call's arguments comes from: the user's words, a result that the operator
// trusts, or nowhere.
//
// # Promise
//
// If [Found] holds for a call, each target of the call stands, whole, in what the user wrote or in a result that the
// operator trusts; each [Leaf] says where. This is not taint tracking: no data is followed. A value that a model split,
// encoded, translated or computed is not found. That the user's words and labelled sources authorize a value, and text
// of strangers does not, is the idea of CaMeL (Debenedetti et al., "Defeating Prompt Injections by Design",
// arXiv:2503.18813).
//
// # Words
//
// A leaf is a scalar of the arguments, or the name of a member of an open object below a target. Its role is target,
// amount, content or none, as the operator's labels say. Its origin is the first that applies:
//
//   - request: the value stands in a prompt of the session, between boundaries;
//   - trusted: the value equals a scalar at a place of an earlier result that the labels trust;
//   - own: the value equals a scalar that the labels say a call of this session created, and the targets of that call
//     were found;
//   - the same three by one of the forms below;
//   - none.
//
// # Request
//
// Prompts of source user count, and of source sdk if the labels say so. Prompts over [MaxTyped] bytes, text from the
// first to the last code fence of a prompt, and block quotes count only with the label pasted. Prompts are compared in
// NFKC, with single spaces and without invisible characters. Raised and lowered characters, fractions and trademark signs
// are boundaries. The value must be in that form already. The domain of an address, and scheme and host of a URL, are
// compared without case; the value has them in lower case, or as written.
//
// Beside the value stands no letter, mark, digit, hyphen, minus or _ @ + /, and before it no apostrophe that follows a
// letter. A sign that joins (such as . or :) is a boundary only if no such character follows. Within a URL, no other value
// is found, and none across paragraphs or before two dots, where text is cut off. A number is not part of a longer number,
// masked, or computed with. Values of fewer than [MinCharacters] characters, and booleans, count
// only after a word of the argument's name, "id", "number" or #.
//
// # Forms
//
// Six one-to-one forms are equal to the value: Name <a@b> and a@b; IBAN and phone with and without spaces; amounts with
// currency or thousands (only for the role amount); a URL whose host is in another case or whose path is / or empty,
// and longer paths with the label prefix; an ISO date and the date in English words; x and either of #x and @x.
//
// # What comes back
//
// A value that stood in the arguments of an earlier call of the requester, and was not found there, never becomes trusted
// or own: the server may only return what it was sent. It stood there if an argument has its letters and digits in this
// order, without marks, or, of fewer than [MinCharacters], only these. Percent-encoded arguments and numbers with an
// exponent are also read decoded. A value that a server composes from several arguments, or decodes in another way, is
// beyond this rule, and so is one that somebody else made a server keep. Results with errors never count.
//
// # Not promised
//
// Origin says nothing about calls without a target, about the choice among genuine values, and about bad content to a
// right recipient. A word that the user wrote is found whatever it meant: where strangers choose names freely, such as
// handles, one of them can be called "please".
//
// The package is pure: it uses no clock, randomness, network or files.
package origin
