package agent

// AskInterrupted is the reply of a question that nobody answered because its session ended.
const AskInterrupted = "interrupted"

// Closing says that the session is about to be closed: questions that end from now on were interrupted, not decided.
func (s *Session) Closing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// isClosing holds for sub-agents as well, whose sessions end with the one that started them.
func (s *Session) isClosing() bool {
	for ; s != nil; s = s.of.parent {
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return true
		}
	}
	return false
}

// RecordAsk keeps what became of a question that was asked again outside a turn.
func (s *Session) RecordAsk(d AskData) {
	s.log.emit(EventAsk, d)
	s.log.flush()
}

// RecordTool keeps another end of a call, whose turn is over. The history keeps what the model was told then.
func (s *Session) RecordTool(d ToolData) {
	s.log.emit(EventTool, d)
	s.log.flush()
}

// Waiting says that a call outside a turn waits for the person, until done.
func (s *Session) Waiting(call string) (done func()) {
	s.waitsFor(call)
	return func() { s.answered(call) }
}
