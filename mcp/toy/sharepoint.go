package toy

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Doc is a document as fetch_sharepoint_doc returns it.
type Doc struct {
	DocID          string `json:"doc_id"`
	Title          string `json:"title"`
	Owner          string `json:"owner"`
	Updated        string `json:"updated"` // date, YYYY-MM-DD
	Classification string `json:"classification"`
	Body           string `json:"body"`
}

type docFile struct {
	Doc       `json:",inline"`
	Tags      []string `json:"tags"`
	Sentences []string `json:"sentences"`
}

func describeDoc(f docFile) record[Doc] {
	f.Body = strings.Join(f.Sentences, " ")
	return record[Doc]{f.DocID, f.Title, f.Tags, f.Sentences, f.Doc}
}

type (
	docArgs struct {
		DocID string `json:"doc_id"`
	}
	docFound struct {
		Status string `json:"status"`
		Doc    *Doc   `json:"doc"`
	}
	docDeleted struct {
		Status string `json:"status"`
		DocID  string `json:"doc_id"`
	}
	docHit struct {
		DocID   string `json:"doc_id"`
		Title   string `json:"title"`
		Snippet string `json:"snippet"`
		Score   int    `json:"score"`
	}
)

const docIDInput = `{
  "type": "object",
  "required": ["doc_id"],
  "additionalProperties": false,
  "properties": {
    "doc_id": {"type": "string", "pattern": "^doc-[0-9]{3}$", "description": "Id, such as doc-001."}
  }
}`

const docDeletedOutput = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "required": ["status", "doc_id"],
  "additionalProperties": false,
  "properties": {
    "status": {"enum": ["DELETED", "NOT_FOUND"]},
    "doc_id": {"type": "string", "pattern": "^doc-[0-9]{3}$"}
  }
}`

func newSharePoint() *Server {
	docs := load("documents.json", describeDoc)
	tools := []tool{
		{
			name: "search_sharepoint", title: "Search documents",
			description: "Finds documents in which every word of the query occurs.",
			input:       queryInput, output: outputType("sharepoint-search.json"),
			run: takes(func(a queryArgs) any {
				return foundBy(a.Query, docs.search(a.Query), func(h hit) docHit {
					return docHit{h.id, h.title, h.snippet, h.score}
				})
			}),
		},
		{
			name: "fetch_sharepoint_doc", title: "Fetch a document",
			description: "Returns one document in full.",
			input:       docIDInput, output: outputType("sharepoint-doc.json"),
			run: takes(func(a docArgs) any {
				doc := docs.get(a.DocID)
				return docFound{found(doc != nil), doc}
			}),
		},
		{
			name: "delete_sharepoint_doc", title: "Delete a document",
			description: "Deletes one document for good.",
			input:       docIDInput, output: jsontext.Value(docDeletedOutput), changes: true,
			run: takes(func(a docArgs) any {
				return docDeleted{done(docs.remove(a.DocID), statusDeleted), a.DocID}
			}),
		},
	}
	index := &sdk.Resource{
		URI: "sharepoint://documents", Name: "documents", Title: "Document index", MIMEType: "text/plain",
		Description: "Id and title of every document.",
	}
	return newServer(SharePoint, "Demo SharePoint", tools, index, docs.list, promptText{
		name: "summarize_document", title: "Summarize a document", argument: "doc_id",
		description: "Asks for a summary with evidence.",
		text:        "Summarize document %s. Quote the sentence behind each statement.",
	})
}
