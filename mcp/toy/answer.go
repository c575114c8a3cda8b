package toy

// queryInput is the inputSchema of the three searches.
const queryInput = `{
  "type": "object",
  "required": ["query"],
  "additionalProperties": false,
  "properties": {
    "query": {
      "type": "string", "minLength": 1, "maxLength": 200, "pattern": "\\S",
      "description": "Words to look for; the beginning of a word is enough."
    }
  }
}`

type queryArgs struct {
	Query string `json:"query"`
}

// results is what a search returns, with H the hits of one server.
type results[H any] struct {
	Query string `json:"query"`
	Count int    `json:"count"`
	Hits  []H    `json:"hits"`
}

func foundBy[H any](query string, hits []hit, show func(hit) H) results[H] {
	r := results[H]{Query: query, Count: len(hits), Hits: make([]H, 0, len(hits))}
	for _, h := range hits {
		r.Hits = append(r.Hits, show(h))
	}
	return r
}

// found is the status of a fetch.
func found(ok bool) string { return done(ok, statusOK) }

// done is the status of a tool that is about one entry: NOT_FOUND if there was none.
func done(ok bool, status string) string {
	if ok {
		return status
	}
	return statusNotFound
}
