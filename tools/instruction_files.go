package tools

// InstructionFiles are the names under which a folder keeps instructions for agents, in the order in which they count: projects
// keep copies of one text for several agents, so the first that a folder has is the one to read.
var InstructionFiles = []string{"AGENTS.md", "CLAUDE.md", "CONTEXT.md", "GEMINI.md"}
