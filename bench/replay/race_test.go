//go:build race

package replay

// raceDetector says that the tests run under the race detector.
const raceDetector = true
