package patch

// Apply works the whole patch out in memory: read gives a file's text and whether it exists. Changes come in the
// order they should be made, at most one per file; an error (an *Error, or read's own) means nothing should be done.
func (p *Patch) Apply(read func(path string) (text string, exists bool, err error)) ([]FileChange, error) {
	return nil, nil
}
