-- Moves the cursor in a review: to a hunk, or to the next or previous one, also in other files.
local compat = require("pillion.compat")
local paths = require("pillion.paths")
local view = require("pillion.review_view")

local M = {}

-- Virtual lines above the first line are visible only if the window is scrolled to leave room for them.
local function make_room(win, row)
  if row == 0 then
    vim.api.nvim_win_call(win, function()
      if vim.fn.winsaveview().topline == 1 then
        vim.fn.winrestview({ topline = 1, topfill = 1 })
      end
    end)
  end
end

local function window_for(buf)
  local win = paths.window(buf) or paths.editor_window(true)
  if win then
    return win
  end
  local back = vim.api.nvim_get_current_win()
  vim.cmd("noautocmd topleft vsplit")
  win = vim.api.nvim_get_current_win()
  vim.api.nvim_set_current_win(back)
  return win
end

local function put(review, hunk, focus)
  if focus and hunk.file.side_by_side and require("pillion.review_edit").go_to(hunk) then
    return
  end
  local buf = view.attach(hunk.file, true)
  if not buf then
    return
  end
  local win = window_for(buf)
  if vim.api.nvim_win_get_buf(win) ~= buf then
    if focus then
      vim.api.nvim_win_call(win, function()
        vim.cmd("normal! m'")
      end)
    end
    vim.api.nvim_win_set_buf(win, buf)
  end
  view.attach(hunk.file, true)
  local row = view.row(hunk) or 0
  vim.api.nvim_win_set_cursor(win, { math.min(row + 1, vim.api.nvim_buf_line_count(buf)), 0 })
  if focus then
    vim.api.nvim_set_current_win(win)
  end
  vim.api.nvim_win_call(win, function()
    vim.cmd("normal! zv")
    local height = vim.api.nvim_win_get_height(win)
    if vim.fn.winline() > height - math.min(#hunk.new + 2, math.floor(height / 2)) or vim.fn.winline() <= 2 then
      vim.cmd("normal! zz")
    end
  end)
  make_room(win, row)
  view.refresh(review)
end

local function pending(review)
  local out = {}
  for _, h in ipairs(review.hunks) do
    if not h.decision then
      out[#out + 1] = h
    end
  end
  return out
end

---@param review pillion.Review
function M.present(review)
  local first = pending(review)[1]
  if first then
    put(review, first, false)
  end
end

-- Goes to a hunk.
---@param review pillion.Review
---@param hunk pillion.ReviewHunk
function M.to(review, hunk)
  put(review, hunk, true)
end

-- Returns the open hunk at or nearest to the cursor in the current buffer.
---@param review pillion.Review
---@return pillion.ReviewHunk?
function M.here(review)
  local edit = package.loaded["pillion.review_edit"]
  if edit and edit.pane(vim.api.nvim_get_current_buf()) then
    return edit.hunk_at(vim.api.nvim_get_current_buf())
  end
  local buf, cursor = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
  local best, least
  for _, h in ipairs(pending(review)) do
    local row = h.file.buf == buf and view.row(h)
    if row then
      local d = cursor < row and row - cursor or math.max(0, cursor - row - math.max(#h.old - 1, 0))
      if not least or d < least then
        best, least = h, d
      end
    end
  end
  return best
end

-- Returns the next (1) or previous (-1) open hunk; after the last one of a file, that of the next file.
---@param review pillion.Review
---@param direction integer
function M.step(review, direction)
  local list = pending(review)
  if #list == 0 then
    return
  end
  local edit = package.loaded["pillion.review_edit"]
  local pane = edit and edit.pane(vim.api.nvim_get_current_buf())
  if pane then
    local hunk = edit.hunk_at(vim.api.nvim_get_current_buf(), direction)
    if hunk then
      return M.to(review, hunk)
    end
    local others = vim.tbl_filter(function(h)
      return h.file ~= pane.file
    end, list)
    list = #others > 0 and others or list
    return M.to(review, list[direction > 0 and 1 or #list])
  end
  local buf, cursor = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
  local inside = false
  local function order(h)
    return h.file.buf == buf and view.row(h) or nil
  end
  local first, last = 1, #list
  for i, h in ipairs(list) do
    if h.file.buf == buf then
      inside = true
    end
    local row = order(h)
    if row and direction > 0 and row > cursor then
      return M.to(review, h)
    elseif row and row >= cursor and direction < 0 then
      return M.to(review, list[i > 1 and i - 1 or last])
    elseif not row and inside and direction > 0 then
      return M.to(review, h)
    elseif not row and inside and direction < 0 then
      return M.to(review, list[i - 1])
    end
  end
  M.to(review, list[direction > 0 and first or last])
end

-- After a decision: moves to the nearest open hunk below, or above; if the file has none, to another file.
---@param review pillion.Review
---@param from pillion.ReviewHunk
function M.onward(review, from)
  if review.closed then
    return
  end
  local list = pending(review)
  for _, h in ipairs(list) do
    if h.number > from.number then
      return M.to(review, h)
    end
  end
  if list[1] then
    M.to(review, list[1])
  end
end

-- Removes the buffer of a decided new file; windows that show it return to the buffer before.
---@param file pillion.ReviewFile
function M.drop_preview(file)
  local buf = file.buf
  file.buf = nil
  for _, w in ipairs(vim.fn.win_findbuf(buf)) do
    vim.api.nvim_win_call(w, function()
      local alt = vim.fn.bufnr("#")
      if alt > 0 and alt ~= buf and compat.loaded(alt) then
        vim.api.nvim_win_set_buf(w, alt)
      else
        vim.api.nvim_win_set_buf(w, vim.api.nvim_create_buf(true, false))
      end
    end)
  end
  pcall(vim.api.nvim_buf_delete, buf, { force = true })
end

return M
