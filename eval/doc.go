// Package eval has the neutral format of evaluations: the tools of servers ([Tools]), and cases
// ([Case]). docs/reference/evaluation-format.md describes it for authors of such files.
//
// The format knows no benchmark and no gate. A tools file has the answers of MCP servers to
// tools/list. A cases file has one case a line: the user's request, the calls that the user's task
// needs, and the calls that an attack wants. Package eval/attack judges the calls.
//
// Files are read strictly: no unknown and no duplicate members, bounded lines, and a [Fault] that
// names file, line and remedy.
package eval
