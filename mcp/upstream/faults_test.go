package upstream

import (
	"maps"
	"runtime"
	"strings"
)

// selfReference is the params of an elicitation that kills a client which resolves its schema.
const selfReference = `{"message":"m","requestedSchema":{"allOf":[{"$ref":"#"}]}}`

// echoed is a secret that a quoted reason writes differently.
const echoed = `s3cret"tok\en`

// The scripts of the fault matrix go wrong at the call.
func init() {
	fault := func(lines ...string) func() script {
		return func() script {
			return answering("tools/call", func(w spoken) []string {
				out := []string{}
				for _, line := range lines {
					out = append(out, strings.ReplaceAll(line, "ID", w.id))
				}
				return out
			})
		}
	}
	maps.Copy(roles, map[string]func() script{
		"hangs-at-call":      func() script { return answering("tools/call", silence) },
		"dies-in-its-answer": fault(cutOff + `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"ha`),
		"100-MiB":            fault(flood + "ID"),
		"not-json":           fault(`{hello`),
		"batch":              fault(`[{"jsonrpc":"2.0","id":ID,"result":{}}]`),
		"text-behind":        fault(`{"jsonrpc":"2.0","id":ID,"result":{}} {}`),
		"echoes-the-secret": fault(`{"jsonrpc":"2.0","id":ID,"error":{"code":7,"message":` +
			`"no entry for s3cret\"tok\\en or Bearer s3cret\"tok\\en"}}`),
		"elicits": fault(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":`+selfReference+`}`,
			untilRefused, result("ID", oneResult)),
		"samples": fault(`{"jsonrpc":"2.0","id":8,"method":"sampling/createMessage","params":{"messages":[]}}`,
			untilRefused, result("ID", oneResult)),
		"pings": fault(pingAsk, untilAnswered, result("ID", oneResult)),
	})
}

// allocated is how many bytes this process has ever allocated. A server in the same process is counted too; it
// allocates little.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
