-- Writes a conversation to a buffer: entries become lines, and only new text is written. Streamed text is collected
-- and written at most 30 times a second.
local compat = require("pillion.compat")
local render = require("pillion.chat_render")

---@class pillion.ChatBuffer: pillion.SessionView
---@field buf integer
---@field session pillion.Session
local Buffer = {}
Buffer.__index = Buffer

require("pillion.chat_folds")(Buffer)
require("pillion.chat_export")(Buffer)

local M = {
  ---@type table<integer, pillion.ChatBuffer>
  by_buf = {},
}

local ns = vim.api.nvim_create_namespace("pillion_chat")
local interval = 33 -- milliseconds between two writes
local max_written = 16 * 1024 -- bytes of one write
-- With more lines treesitter is stopped: it examines all parts of a text at every change.
local max_parsed = 1500

-- Writes the changes after a pause, so that many small changes are one write.
function Buffer:schedule()
  if self.timer then
    return
  end
  self.timer = true
  vim.defer_fn(function()
    self.timer = nil
    self:flush()
  end, interval)
end

---@param entry pillion.Entry
function Buffer:added(entry)
  self.dirty[entry] = true
  self:schedule()
end

-- Called when text was added to the last entry.
---@param entry pillion.Entry
function Buffer:appended(entry)
  self.dirty[entry] = true
  self:schedule()
end

-- Called when an entry has changed; it is rendered again as a whole.
---@param entry pillion.Entry
function Buffer:changed(entry)
  self.dirty[entry] = true
  if self.placed[entry] then
    self.placed[entry].stale = true
  end
  self:schedule()
end

-- Called when the status line has changed.
function Buffer:status()
  self.restate = true
  self:schedule()
end

-- Renders the whole conversation again.
function Buffer:reset()
  self.placed, self.order, self.dirty = {}, {}, {}
  for _, e in ipairs(self.session.entries) do
    self.dirty[e] = true
  end
  self.empty = true
  self:write(0, -1, {})
  for _, w in ipairs(vim.fn.win_findbuf(self.buf)) do
    vim.api.nvim_win_call(w, function()
      pcall(vim.cmd, "normal! zE")
    end)
  end
  self:schedule()
end

---@return boolean whether a window shows the conversation
function Buffer:visible()
  return compat.loaded(self.buf) and #vim.fn.win_findbuf(self.buf) > 0
end

-- Reports whether the cursor is in the chat: in the conversation or in its input.
---@return boolean
function Buffer:focused()
  local buf = vim.api.nvim_get_current_buf()
  return buf == self.buf or vim.b[buf].pillion_input_of == self.buf
end

-- Stops treesitter before the buffer grows beyond what it parses quickly.
---@param more integer lines that will be added
function Buffer:unparse(more)
  if self.parsed and vim.api.nvim_buf_line_count(self.buf) + more > max_parsed then
    self.parsed = false
    vim.treesitter.stop(self.buf)
    vim.bo[self.buf].syntax = "markdown"
  end
end

-- Replaces lines of the buffer, which is not modifiable otherwise.
---@param first integer from 0
---@param last integer from 0, excluded; -1 is the end
---@param lines string[]
function Buffer:write(first, last, lines)
  self:unparse(#lines)
  vim.bo[self.buf].modifiable = true
  vim.api.nvim_buf_set_lines(self.buf, first, last, false, lines)
  vim.bo[self.buf].modifiable = false
  vim.bo[self.buf].modified = false
end

-- Returns the first row of an entry, with the empty line before it. It counts from the end, where most changes are.
---@param index integer of the entry in self.order, from 1
---@return integer from 0
function Buffer:row(index)
  local row = self.empty and 0 or vim.api.nvim_buf_line_count(self.buf)
  for i = #self.order, index, -1 do
    row = row - self.placed[self.order[i]].count
  end
  return row
end

-- Newlines at the end of a streamed text are written only when more text follows; otherwise empty lines would remain.
local function held(entry)
  return entry.pieces and table.concat(entry.pieces):match("\n*$") or ""
end

local function with_gap(r)
  if not r.gap then
    return r.lines, 0
  end
  local lines = { "" }
  vim.list_extend(lines, r.lines)
  return lines, 1
end

-- Highlights the lines of a rendered entry.
---@param row integer of its first line, from 0
---@param r pillion.Rendered
---@param gap integer empty lines before it
function Buffer:color(row, r, gap)
  for _, m in ipairs(r.marks) do
    local line = r.lines[m[1] + 1]
    pcall(vim.api.nvim_buf_set_extmark, self.buf, ns, row + gap + m[1], m[2], { end_row = row + gap + m[1], end_col = m[3] == -1 and #line or math.min(m[3], #line), hl_group = m[4] })
  end
end

-- Renders an entry at the end of the buffer.
---@param entry pillion.Entry
function Buffer:place(entry)
  local r = render.render(entry, self.order[#self.order])
  local lines, gap = with_gap(r)
  local row = self.empty and 0 or vim.api.nvim_buf_line_count(self.buf)
  self:write(row, self.empty and -1 or row, lines)
  self.empty = false
  self.order[#self.order + 1] = entry
  self.placed[entry] = { count = #lines, gap = gap, pieces = entry.pieces and #entry.pieces, index = #self.order, foldable = r.fold, held = held(entry) }
  self:color(row, r, gap)
end

-- Renders an entry again and replaces its lines.
---@param entry pillion.Entry
function Buffer:replace(entry)
  local p = self.placed[entry]
  local row = self:row(p.index)
  local r = render.render(entry, self.order[p.index - 1])
  local lines, gap = with_gap(r)
  vim.api.nvim_buf_clear_namespace(self.buf, ns, row, row + p.count)
  self:write(row, row + p.count, lines)
  p.count, p.gap, p.foldable, p.stale = #lines, gap, r.fold, nil
  p.pieces, p.held = entry.pieces and #entry.pieces, held(entry)
  self:color(row, r, gap)
  if p.foldable then
    self:fold(entry)
  end
end

-- Writes new text at the end of the last entry: the usual case while an answer is streamed.
---@param entry pillion.Entry
function Buffer:extend(entry)
  local p = self.placed[entry]
  local last, bytes = p.pieces, 0
  while last < #entry.pieces and bytes < max_written do
    last = last + 1
    bytes = bytes + #entry.pieces[last]
  end
  local words = p.held .. table.concat(entry.pieces, "", p.pieces + 1, last)
  p.pieces = last
  if last < #entry.pieces then
    self:appended(entry) -- the rest is written next
  end
  p.held = words:match("\n*$")
  words = words:sub(1, #words - #p.held)
  if words == "" then
    return
  end
  local lines = render.lines_of(words)
  local prefix = entry.kind == "thought" and "  " or ""
  for i = 2, #lines do
    lines[i] = prefix .. lines[i]
  end
  self:unparse(#lines)
  local row = vim.api.nvim_buf_line_count(self.buf) - 1
  local column = #vim.api.nvim_buf_get_lines(self.buf, row, row + 1, false)[1]
  vim.bo[self.buf].modifiable = true
  vim.api.nvim_buf_set_text(self.buf, row, column, row, column, lines)
  vim.bo[self.buf].modifiable = false
  vim.bo[self.buf].modified = false
  p.count = p.count + #lines - 1
  if entry.kind == "thought" then
    for i = 0, #lines - 1 do
      local n = row + i
      local l = vim.api.nvim_buf_get_lines(self.buf, n, n + 1, false)[1]
      vim.api.nvim_buf_set_extmark(self.buf, ns, n, 0, { end_row = n, end_col = #l, hl_group = "PillionThought" })
    end
  end
end

-- Writes all changes.
function Buffer:flush()
  if not compat.loaded(self.buf) then
    return
  end
  if next(self.dirty) then
    local stuck = {}
    local count = vim.api.nvim_buf_line_count(self.buf)
    for _, w in ipairs(vim.fn.win_findbuf(self.buf)) do
      stuck[w] = vim.api.nvim_win_get_cursor(w)[1] >= count
    end
    local dirty = self.dirty
    self.dirty = {}
    local entries = self.session.entries
    for i = 1, #entries do -- first the entries that have lines and changed, then the new ones in order
      local e = entries[i]
      if dirty[e] and self.placed[e] then
        local p = self.placed[e]
        local at_end = self.order[#self.order] == e
        if at_end and e.pieces and not p.stale and not e.text and i == #entries then
          self:extend(e)
        else
          self:replace(e)
        end
      end
    end
    for i = #self.order + 1, #entries do
      local before = self.order[#self.order]
      self:place(entries[i])
      if before and self.placed[before].foldable and not self.placed[before].folded then
        self:fold(before)
      end
    end
    local last = self.order[#self.order]
    if last and last.kind == "tool" and self.placed[last].foldable and not self.placed[last].folded then
      self:fold(last)
    end
    count = vim.api.nvim_buf_line_count(self.buf)
    for w, was in pairs(stuck) do
      if was and vim.api.nvim_win_is_valid(w) then
        vim.api.nvim_win_set_cursor(w, { count, 0 })
        vim.api.nvim_win_call(w, function()
          if vim.fn.line("w0") > 1 and vim.fn.winline() < vim.fn.winheight(0) then
            pcall(vim.cmd, "normal! zb") -- the text became shorter: do not show empty lines at the bottom
          end
        end)
      end
    end
  end
  if self.restate then
    self.restate = false
    require("pillion.status").changed(self)
  end
end

-- Puts text into the input, where the person can change and send it.
---@param words string
function Buffer:set_input(words)
  if self.input and compat.loaded(self.input) then
    require("pillion.chat_input").set(self, words)
  end
end

-- Returns the entry at a line of the buffer (from 1).
---@param line integer
---@return pillion.Entry?
function Buffer:entry_at(line)
  local row = 0
  for _, e in ipairs(self.order) do
    row = row + self.placed[e].count
    if line <= row then
      return e
    end
  end
end

---@param session pillion.Session
---@return pillion.ChatBuffer
function M.new(session)
  require("pillion.highlights").define()
  local buf = vim.api.nvim_create_buf(false, true)
  local self = setmetatable({ buf = buf, session = session, dirty = {}, placed = {}, order = {}, empty = true }, Buffer)
  M.by_buf[buf] = self
  vim.bo[buf].buftype = "acwrite"
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].swapfile = false
  vim.bo[buf].modifiable = false
  vim.bo[buf].undolevels = -1
  pcall(vim.api.nvim_buf_set_name, buf, "pillion://chat/" .. buf)
  vim.bo[buf].filetype = "pillion"
  self.parsed = compat.treesitter(buf, "markdown")
  if not self.parsed then
    vim.bo[buf].syntax = "markdown"
  end
  vim.api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buf,
    callback = function(args)
      local own = args.file == vim.api.nvim_buf_get_name(buf) or args.match == vim.api.nvim_buf_get_name(buf) or args.file:match("^pillion://")
      vim.bo[buf].modified = false
      self:export(own and self:export_path() or vim.fn.fnamemodify(args.file, ":p"))
    end,
  })
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    callback = function()
      M.by_buf[buf] = nil
      if session.view == self then
        session.view = nil
      end
    end,
  })
  session.view = self
  for _, e in ipairs(session.entries) do
    self.dirty[e] = true
  end
  self:schedule()
  return self
end

return M
