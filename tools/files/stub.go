package files

// Placeholders until their files land.
type (
	Tracker struct{}
	Locks   struct{}
	Journal interface{}
)
