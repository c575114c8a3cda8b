package main

import _ "embed"

// helpText has the help of every command: a heading with its path, a line that says what it does, its description, and examples in a fence.
//
//go:embed help.md
var helpText string
