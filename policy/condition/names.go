package condition

import (
	"strings"

	"cel.dev/cel-go/cel"
)

// A Name is something that an expression may name.
type Name struct {
	Name    string // as it is written
	Type    string // its CEL type
	Where   string // the kinds of expression that may name it: policy, risk, score
	Meaning string
}

// Names returns everything that an expression may name, in the order of the documentation.
func Names() []Name {
	out := make([]Name, 0, nameCount+2)
	for _, n := range names {
		out = append(out, Name{n.Name, cel.FormatCELType(n.celType), n.where.String(), n.Meaning})
	}
	return append(out, Name{ClaimPrefix + "NAME", "string", (inPolicy | inRisk).String(),
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
)

func (k kinds) String() string {
	var words []string
	for i, word := range []string{"policy", "risk", "score"} {
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

const (
	nameServer = iota
	nameTool
	nameEnv
	nameActorID
	nameActorRoles
	nameActorKind
	nameActorClient
	nameActorOnBehalfOf
	nameActorGroups
	nameArgs
	nameReadOnly
	nameDestructive
	nameIdempotent
	nameOpenWorld
	namePinned
	nameNow
	nameRiskScore
	nameRiskMode
	nameRiskRules
	nameScore
	nameCount
)

type named struct {
	Name    string
	celType *cel.Type
	where   kinds
	Meaning string
}

var texts = cel.ListType(cel.StringType)

// names says each name once; the index is the constant.
var names = [nameCount]named{
	nameServer: {"server", cel.StringType, inPolicy | inRisk, "the server, by its name in the configuration"},
	nameTool:   {"tool", cel.StringType, inPolicy | inRisk, "the tool"},
	nameEnv:    {"env", cel.StringType, inPolicy | inRisk, "the environment, from the operator's configuration"},
	nameActorID: {"actor.id", cel.StringType, inPolicy | inRisk,
		"the requester's verified name; empty if the requester is not verified"},
	nameActorRoles: {"actor.roles", texts, inPolicy | inRisk,
		"the roles of the verified requester; an error if a role has groups and the requester's groups are unknown"},
	nameActorKind: {"actor.kind", cel.StringType, inPolicy | inRisk, "what the requester is: agent or person"},
	nameActorClient: {"actor.client", cel.StringType, inPolicy | inRisk,
		"the OAuth client of the requester's token; empty for requesters of no identity provider"},
	nameActorOnBehalfOf: {"actor.on_behalf_of", cel.StringType, inPolicy | inRisk,
		"the person for whom an agent acts, as actor.id; empty if there is none"},
	nameActorGroups: {"actor.groups", texts, inPolicy | inRisk,
		"the requester's groups at the identity provider; an error if they are unknown, empty for requesters of no identity provider"},
	nameArgs: {"args", cel.MapType(cel.StringType, cel.DynType), inPolicy | inRisk,
		"the arguments of the call; has(args.x) is true if x is present; using a missing argument is an error"},
	nameReadOnly: {"tool_annotations.readOnlyHint", cel.BoolType, inPolicy | inRisk,
		"the server declares that the tool changes nothing; default false"},
	nameDestructive: {"tool_annotations.destructiveHint", cel.BoolType, inPolicy | inRisk,
		"the server declares that the tool may destroy data; default true"},
	nameIdempotent: {"tool_annotations.idempotentHint", cel.BoolType, inPolicy | inRisk,
		"the server declares that repeating a call changes nothing; default false"},
	nameOpenWorld: {"tool_annotations.openWorldHint", cel.BoolType, inPolicy | inRisk,
		"the server declares that the tool interacts with systems outside its own data; default true"},
	namePinned:    {"pinned", cel.BoolType, inPolicy | inRisk, "whether the tool's definition is pinned"},
	nameNow:       {"now", cel.TimestampType, inPolicy | inRisk, "the recorded time at which the call was assessed"},
	nameRiskScore: {"risk.score", cel.IntType, inPolicy, "the score of the call, 0 to 1000"},
	nameRiskMode:  {"risk.mode", cel.StringType, inPolicy, "the mode of the call"},
	nameRiskRules: {"risk.rules", texts, inPolicy, "the ids of the risk rules that matched, in order"},
	nameScore:     {"score", cel.DoubleType, inRisk | inScore, "the score so far"},
}

// nameIndex finds the constant of a name.
var nameIndex = func() map[string]int {
	index := make(map[string]int, nameCount)
	for i := range names {
		index[names[i].Name] = i
	}
	return index
}()

func nameOf(full string) (int, bool) {
	i, ok := nameIndex[full]
	return i, ok
}
