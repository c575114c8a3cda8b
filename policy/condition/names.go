package condition

import (
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// A Name is something that an expression may name.
type Name struct {
	Name    string // the name in expressions
	Type    string // its CEL type
	Where   string // the kinds of expression that may name it: policy, risk, score, item
	Meaning string
}

// Names returns everything that an expression may name, in the order of the documentation.
func Names() []Name {
	out := make([]Name, 0, len(names)+2)
	for _, n := range names {
		out = append(out, Name{n.Name, cel.FormatCELType(n.celType), n.where.String(), n.Meaning})
	}
	return append(out, Name{ClaimPrefix + "NAME", "string", (inPolicy | inRisk | inItem).String(),
		"the claim that the configuration calls NAME; an error if the requester's token lacks it, and for requesters of no identity provider"},
		Name{varPrefix + "NAME", "double", inRisk.String(),
			"the value of the variable NAME of the risk rules; an error if the variable failed"})
}

// The kinds of expression.
type kinds uint8

const (
	inPolicy kinds = 1 << iota
	inRisk
	inScore
	inItem
)

func (k kinds) String() string {
	var words []string
	for i, word := range []string{"policy", "risk", "score", "item"} {
		if k&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// varPrefix begins the name of a variable of the risk rules.
const varPrefix = "vars."

// ClaimPrefix begins the name of a claim of the requester.
const ClaimPrefix = "actor.claims."

// A declaredName is a name of [Names], and how a Subject gives it a value. A nil value is unknown.
type declaredName struct {
	Name    string
	celType *cel.Type
	where   kinds
	Meaning string
	value   func(*Subject) ref.Val
}

var texts = cel.ListType(cel.StringType)

// names says each name once.
var names = []declaredName{
	{"server", cel.StringType, inPolicy | inRisk, "the server, by its name in the configuration",
		func(s *Subject) ref.Val { return nameText(s.input.Server) }},
	{"tool", cel.StringType, inPolicy | inRisk, "the tool", func(s *Subject) ref.Val { return nameText(s.input.Tool) }},
	{"env", cel.StringType, inPolicy | inRisk, "the environment, from the operator's configuration",
		func(s *Subject) ref.Val { return nameText(s.input.Env) }},
	{"actor.id", cel.StringType, inPolicy | inRisk | inItem,
		"the requester's verified name; empty if the requester is not verified",
		func(s *Subject) ref.Val { return nameText(s.input.Actor.ID) }},
	{"actor.roles", texts, inPolicy | inRisk | inItem,
		"the roles of the verified requester; an error if a role has groups and the requester's groups are unknown",
		func(s *Subject) ref.Val {
			if s.input.Actor.RolesUnknown {
				return nil
			}
			return types.NewStringList(types.DefaultTypeAdapter, s.input.Actor.Roles)
		}},
	{"actor.kind", cel.StringType, inPolicy | inRisk | inItem, "what the requester is: agent or person",
		func(s *Subject) ref.Val { return s.input.Actor.knownText(s.input.Actor.Kind) }},
	{"actor.client", cel.StringType, inPolicy | inRisk | inItem,
		"the OAuth client of the requester's token; empty for requesters of no identity provider",
		func(s *Subject) ref.Val { return s.input.Actor.knownText(s.input.Actor.Client) }},
	{"actor.on_behalf_of", cel.StringType, inPolicy | inRisk | inItem,
		"the person for whom an agent acts, as actor.id; empty if there is none",
		func(s *Subject) ref.Val { return s.input.Actor.knownText(s.input.Actor.OnBehalfOf) }},
	{nameGroups, texts, inPolicy | inRisk | inItem,
		"the requester's groups at the identity provider; an error if they are unknown, empty for requesters of no identity provider",
		func(s *Subject) ref.Val {
			if s.input.Actor.Groups == nil {
				return nil
			}
			return types.NewStringList(types.DefaultTypeAdapter, *s.input.Actor.Groups)
		}},
	{nameArgs, cel.MapType(cel.StringType, cel.DynType), inPolicy | inRisk,
		"the arguments of the call; has(args.x) is true if x is present; using a missing argument is an error",
		func(s *Subject) ref.Val { return decodeArgs(s.input.Args) }},
	{"tool_annotations.readOnlyHint", cel.BoolType, inPolicy | inRisk,
		"the server declares that the tool changes nothing; default false",
		func(s *Subject) ref.Val { return types.Bool(hintOr(s.input.Annotations.ReadOnly, false)) }},
	{"tool_annotations.destructiveHint", cel.BoolType, inPolicy | inRisk,
		"the server declares that the tool may destroy data; default true",
		func(s *Subject) ref.Val { return types.Bool(hintOr(s.input.Annotations.Destructive, true)) }},
	{"tool_annotations.idempotentHint", cel.BoolType, inPolicy | inRisk,
		"the server declares that repeating a call changes nothing; default false",
		func(s *Subject) ref.Val { return types.Bool(hintOr(s.input.Annotations.Idempotent, false)) }},
	{"tool_annotations.openWorldHint", cel.BoolType, inPolicy | inRisk,
		"the server declares that the tool interacts with systems outside its own data; default true",
		func(s *Subject) ref.Val { return types.Bool(hintOr(s.input.Annotations.OpenWorld, true)) }},
	{"pinned", cel.BoolType, inPolicy | inRisk, "whether the tool's definition is pinned",
		func(s *Subject) ref.Val { return types.Bool(s.input.Pinned) }},
	{"now", cel.TimestampType, inPolicy | inRisk, "the recorded time at which the call was assessed",
		func(s *Subject) ref.Val { return parseTime(s.input.Now) }},
	{sessionPrefix + "known", cel.BoolType, inPolicy | inRisk, "whether a client's hook told in which session the call was requested",
		func(s *Subject) ref.Val { return types.Bool(s.input.Session != nil) }},
	{sessionPrefix + "id", cel.StringType, inPolicy | inRisk, "the client's id of the session; empty if it is not known",
		func(s *Subject) ref.Val { return nameText(s.session().ID) }},
	{sessionPrefix + "client", cel.StringType, inPolicy | inRisk, "the client, such as claude or codex; empty if the session is not known",
		func(s *Subject) ref.Val { return nameText(s.session().Client) }},
	{sessionPrefix + "calls", cel.IntType, inPolicy | inRisk, "how many calls of the session were permitted before; at most 10,000 are counted, and calls of the same moment see the same number",
		func(s *Subject) ref.Val { return types.Int(s.session().Calls) }},
	{sessionPrefix + "rewritten", cel.BoolType, inPolicy | inRisk,
		"whether the client reported that a call of the session ran with other arguments than the permitted ones",
		func(s *Subject) ref.Val { return types.Bool(s.session().Rewritten) }},
	{nameUntrusted, cel.BoolType, inPolicy | inRisk,
		"whether a call of the session was made to a tool whose results the labels do not trust; true if no session is known",
		func(s *Subject) ref.Val { return types.Bool(s.input.Origins == nil || s.input.Origins.Untrusted) }},
	{namePrivate, cel.BoolType, inPolicy | inRisk,
		"whether a call of the session was made to a tool with the label private; true if no session is known",
		func(s *Subject) ref.Val { return types.Bool(s.input.Origins == nil || s.input.Origins.Private) }},
	{"risk.score", cel.IntType, inPolicy, "the score of the call, 0 to 1000",
		func(s *Subject) ref.Val { return types.Int(s.risk.Score) }},
	{"risk.mode", cel.StringType, inPolicy, "the mode of the call",
		func(s *Subject) ref.Val { return nameText(s.risk.Mode) }},
	{"risk.rules", texts, inPolicy, "the ids of the risk rules that matched, in order",
		func(s *Subject) ref.Val { return types.NewStringList(types.DefaultTypeAdapter, s.risk.Rules) }},
	{nameScore, cel.DoubleType, inRisk | inScore, "the score so far", nil},
	{nameItem, cel.DynType, inItem, "the item of a result that trusted_if of labels.yaml judges", nil},
}

// Names that have a meaning of their own in this package.
const (
	nameGroups = "actor.groups"
	nameArgs   = "args"
	nameScore  = "score"
	nameItem   = "item"
	riskPrefix = "risk."

	sessionPrefix = "session."
)
