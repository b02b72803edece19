// Package patch reads patches and works out what they make of files.
package patch

// Parse reads a patch in the *** Begin Patch grammar or a unified diff. The error is an *Error.
func Parse(text string) (*Patch, error) {
	return nil, &Error{Kind: BadEnvelope, Message: "not a patch"}
}
