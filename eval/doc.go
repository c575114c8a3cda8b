// Package eval holds the neutral format of evaluations: what servers offer ([Tools]), and what is asked, needed and wanted
// of them ([Case]). docs/reference/evaluation-format.md describes it for those who write such files.
//
// The format knows no benchmark and no gate. A tools file is what MCP servers answer to tools/list. A cases file has one
// case a line: the user's request, the calls that the user's task needs, and the calls that an attack wants. Whoever runs
// cases decides what stands between the calls and the servers; package eval/attack is one who does.
//
// Everything is read as strictly as what crosses a trust boundary: one spelling, no unknown and no duplicate members, bounded
// lines, and a [Fault] that names file, line and remedy.
package eval
