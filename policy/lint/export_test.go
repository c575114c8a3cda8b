package lint

// Severities gives tests every code.
var Severities = severities
