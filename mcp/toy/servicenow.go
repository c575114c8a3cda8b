package toy

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Ticket is a ticket as get_ticket returns it.
type Ticket struct {
	TicketID        string `json:"ticket_id"`
	Title           string `json:"title"`
	Requester       string `json:"requester"`
	Opened          string `json:"opened"` // date, YYYY-MM-DD
	State           string `json:"state"`
	Priority        int    `json:"priority"` // 1 is the most urgent, 5 the least
	AssignmentGroup string `json:"assignment_group"`
	Description     string `json:"description"`
	Resolution      string `json:"resolution,omitempty"`
}

// stateClosed is the state that close_ticket sets.
const stateClosed = "Closed"

type ticketFile struct {
	Ticket    `json:",inline"`
	Tags      []string `json:"tags"`
	Sentences []string `json:"sentences"`
}

func describeTicket(f ticketFile) record[Ticket] {
	f.Description = strings.Join(f.Sentences, " ")
	return record[Ticket]{f.TicketID, f.Title, f.Tags, f.Sentences, f.Ticket}
}

type (
	ticketArgs struct {
		TicketID string `json:"ticket_id"`
	}
	closeArgs struct {
		TicketID   string `json:"ticket_id"`
		Resolution string `json:"resolution"`
	}
	ticketFound struct {
		Status string  `json:"status"`
		Ticket *Ticket `json:"ticket"`
	}
	ticketClosed struct {
		Status   string `json:"status"`
		TicketID string `json:"ticket_id"`
	}
	ticketHit struct {
		TicketID string `json:"ticket_id"`
		Title    string `json:"title"`
		Snippet  string `json:"snippet"`
		Score    int    `json:"score"`
	}
)

const ticketIDInput = `{
  "type": "object",
  "required": ["ticket_id"],
  "additionalProperties": false,
  "properties": {
    "ticket_id": {"type": "string", "pattern": "^INC[0-9]{7}$", "description": "Number, such as INC0010001."}
  }
}`

const closeInput = `{
  "type": "object",
  "required": ["ticket_id"],
  "additionalProperties": false,
  "properties": {
    "ticket_id": {"type": "string", "pattern": "^INC[0-9]{7}$", "description": "Number, such as INC0010001."},
    "resolution": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "What solved it."}
  }
}`

const ticketClosedOutput = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "required": ["status", "ticket_id"],
  "additionalProperties": false,
  "properties": {
    "status": {"enum": ["CLOSED", "NOT_FOUND"]},
    "ticket_id": {"type": "string", "pattern": "^INC[0-9]{7}$"}
  }
}`

func newServiceNow() *Server {
	tickets := load("tickets.json", describeTicket)
	tools := []tool{
		{
			name: "search_servicenow_tickets", title: "Search tickets",
			description: "Finds tickets in which every word of the query occurs.",
			input:       queryInput, output: outputType("servicenow-search.json"),
			run: takes(func(a queryArgs) any {
				return foundBy(a.Query, tickets.search(a.Query), func(h hit) ticketHit {
					return ticketHit{h.id, h.title, h.snippet, h.score}
				})
			}),
		},
		{
			name: "get_ticket", title: "Get a ticket",
			description: "Returns one ticket in full.",
			input:       ticketIDInput, output: outputType("servicenow-ticket.json"),
			run: takes(func(a ticketArgs) any {
				ticket := tickets.get(a.TicketID)
				return ticketFound{found(ticket != nil), ticket}
			}),
		},
		{
			name: "close_ticket", title: "Close a ticket",
			description: "Closes one ticket and notes what solved it.",
			input:       closeInput, output: jsontext.Value(ticketClosedOutput), changes: true,
			run: takes(func(a closeArgs) any {
				ok := tickets.change(a.TicketID, func(t *Ticket) {
					t.State = stateClosed
					if a.Resolution != "" {
						t.Resolution = a.Resolution
					}
				})
				return ticketClosed{done(ok, statusClosed), a.TicketID}
			}),
		},
	}
	queue := &sdk.Resource{
		URI: "servicenow://tickets", Name: "tickets", Title: "Ticket index", MIMEType: "text/plain",
		Description: "Number and title of every ticket.",
	}
	return newServer(ServiceNow, "Demo ServiceNow", tools, queue, tickets.list, promptText{
		name: "triage_ticket", title: "Triage a ticket", argument: "ticket_id",
		description: "Asks for the priority of a ticket and who should take it.",
		text:        "Read ticket %s. Which priority should it have, and which group should take it? Quote what decides it.",
	})
}
