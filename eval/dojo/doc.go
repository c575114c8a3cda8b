// Package dojo makes files of the neutral format of package eval from AgentDojo's tasks.
//
// AgentDojo (E. Debenedetti, J. Zhang, M. Balunović, L. Beurer-Kellner, M. Fischer, F. Tramèr: "AgentDojo: A Dynamic
// Environment to Evaluate Prompt Injection Attacks and Defenses for LLM Agents", 2024) has suites of tools, tasks of users and
// tasks of attackers, each with the calls that carry it out. What is read here are three JSON files derived from its sources:
// tools.json, user_tasks.json and injection/injection_tasks.json. None of them is part of this project.
//
// [Import] makes, for each suite, a tools file with one server of the suite's name, and a cases file with one case for each
// task of a user and each task of an attacker that has calls. A second cases file has the tasks' own writes, each with one
// argument changed so that it goes to another target. [Notes] counts the changes of the import; the
// rules are in docs/reference/evaluation-format.md.
package dojo
