package draft

import "sync"

// queue is a list of folders that several goroutines work off together, each adding the folders that it finds. The zero value is empty.
type queue struct {
	mu   sync.Mutex
	more *sync.Cond
	list []string // guarded by mu
	busy int      // guarded by mu; goroutines that work on a folder and may still add others
}

// put adds a folder.
func (q *queue) put(dir string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, dir)
	if q.more != nil {
		q.more.Signal()
	}
}

// run calls work for each folder of the queue, in n goroutines, until none is left and none can come.
func (q *queue) run(n int, work func(dir string)) {
	q.more = sync.NewCond(&q.mu)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			for {
				for len(q.list) == 0 && q.busy > 0 {
					q.more.Wait()
				}
				if len(q.list) == 0 {
					q.more.Broadcast() // nothing is left, and nobody works: the others end too
					return
				}
				// The last one first, so that the list stays short in a deep tree.
				dir := q.list[len(q.list)-1]
				q.list = q.list[:len(q.list)-1]
				q.busy++
				q.mu.Unlock()
				work(dir)
				q.mu.Lock()
				q.busy--
			}
		})
	}
	wg.Wait()
}
