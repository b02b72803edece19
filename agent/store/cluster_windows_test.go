package store

import "testing"

func both(t *testing.T, f func(t *testing.T, where string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, file(t)) })
}

func stopCluster() {}
