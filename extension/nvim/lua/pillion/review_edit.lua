-- Other words for a proposal: one hunk in a split, or the whole file side by side with `:diffsplit`. Writing the
-- buffer is the decision; closing it decides nothing.
local go = require("pillion.review_go")
local log = require("pillion.log")
local view = require("pillion.review_view")

local M = {}

---@type table<integer, {review: pillion.Review, close: fun()}>
local open = {}
local ns = vim.api.nvim_create_namespace("pillion_review_edit")

local function scratch(review, name, lines, filetype, on_write, on_close)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].buftype = "acwrite"
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].swapfile = false
  pcall(vim.api.nvim_buf_set_name, buf, "pillion://" .. name .. "/" .. buf)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].filetype = filetype
  vim.bo[buf].modified = false
  vim.b[buf].pillion_proposal = true
  open[buf] = {
    review = review,
    close = function()
      open[buf] = nil
      if on_close then
        on_close()
      end
      pcall(vim.api.nvim_buf_delete, buf, { force = true })
    end,
  }
  vim.api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buf,
    callback = function()
      vim.bo[buf].modified = false
      vim.schedule(function()
        on_write(vim.api.nvim_buf_get_lines(buf, 0, -1, false))
      end)
    end,
  })
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    callback = function()
      if open[buf] then
        open[buf] = nil
        if on_close then
          vim.schedule(on_close)
        end
      end
    end,
  })
  return buf
end

-- Edits one hunk's new lines in a split below. `:w` takes them.
---@param review pillion.Review
---@param hunk pillion.ReviewHunk
function M.hunk(review, hunk)
  if hunk.file.kind == "create" then
    go.to(review, hunk)
    return log.tell("info", "this is a new file: change it here, then accept it")
  elseif hunk.file.kind == "delete" then
    return log.tell("info", "the file is to be deleted; accept or reject that")
  end
  local filetype = hunk.file.buf and vim.bo[hunk.file.buf].filetype or ""
  local buf
  buf = scratch(review, "edit", hunk.new_lines or hunk.new, filetype, function(lines)
    if #lines == 1 and lines[1] == "" then
      lines = {}
    end
    local entry = open[buf]
    if entry then
      entry.close()
    end
    if not review.closed then
      review:decide({ hunk }, vim.deep_equal(lines, hunk.new) and "accept" or "edit", { new_lines = lines })
      go.onward(review, hunk)
    end
  end)
  vim.cmd(("belowright %dsplit"):format(math.max(5, math.min(#hunk.new + 2, 15))))
  vim.api.nvim_win_set_buf(0, buf)
  vim.wo.winfixheight = true
  vim.api.nvim_echo({ { "Change the proposal; :w takes it, :q leaves it undecided", "PillionHint" } }, false, {})
end

local function proposal(file)
  local lines = vim.api.nvim_buf_get_lines(file.buf, 0, -1, false)
  local rows = {}
  for _, h in ipairs(file.hunks) do
    if not h.decision then
      rows[#rows + 1] = { hunk = h, row = view.row(h) or 0 }
    end
  end
  table.sort(rows, function(a, b)
    return a.row < b.row
  end)
  local out, at, places = {}, 1, {}
  for _, x in ipairs(rows) do
    while at <= x.row do
      out[#out + 1] = lines[at]
      at = at + 1
    end
    local first = #out
    vim.list_extend(out, x.hunk.new)
    at = at + #x.hunk.old
    places[#places + 1] = { hunk = x.hunk, first = first, last = #out }
  end
  while at <= #lines do
    out[#out + 1] = lines[at]
    at = at + 1
  end
  return out, places
end

-- The file and the proposal side by side. In the proposal everything can be changed; `:w` takes it as it is then.
---@param review pillion.Review
---@param file pillion.ReviewFile
function M.split(review, file)
  if file.kind == "create" or file.kind == "delete" then
    return log.tell("info", "there is only one side: the file is " .. (file.kind == "create" and "new" or "deleted"))
  end
  if not view.attach(file, true) then
    return
  end
  for _, h in ipairs(file.hunks) do
    if not h.decision then
      go.to(review, h)
      break
    end
  end
  local base = vim.api.nvim_get_current_win()
  local lines, places = proposal(file)
  local marks = {}
  local buf
  local function finish()
    file.side_by_side = nil
    if vim.api.nvim_win_is_valid(base) then
      vim.api.nvim_win_call(base, function()
        vim.cmd("diffoff")
      end)
    end
    if not review.closed then
      view.attach(file)
      view.refresh(review)
    end
  end
  buf = scratch(review, "proposal", lines, vim.bo[file.buf].filetype, function()
    local chosen, outside = {}, {}
    local now = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
    local at = 1
    for i, m in ipairs(marks) do
      local first = vim.api.nvim_buf_get_extmark_by_id(buf, ns, m.first, {})[1]
      local last = vim.api.nvim_buf_get_extmark_by_id(buf, ns, m.last, {})[1]
      if places[i].last >= #lines then
        last = #now
      end
      for row = at, first do
        outside[#outside + 1] = now[row]
      end
      at = math.max(last, first) + 1
      chosen[#chosen + 1] = { m.hunk, { unpack(now, first + 1, last) } }
    end
    for row = at, #now do
      outside[#outside + 1] = now[row]
    end
    local entry = open[buf]
    if entry then
      entry.close()
    end
    if review.closed then
      return
    end
    local was, from = {}, 1
    for _, p in ipairs(places) do
      for row = from, p.first do
        was[#was + 1] = lines[row]
      end
      from = p.last + 1
    end
    for row = from, #lines do
      was[#was + 1] = lines[row]
    end
    if not vim.deep_equal(was, outside) then
      log.tell("warn", "lines outside of the proposal were changed; they are not part of the answer. Change them in the file itself")
    end
    local final
    for _, c in ipairs(chosen) do
      local h, new = c[1], c[2]
      final = h
      if vim.deep_equal(new, h.new) then
        review:decide({ h }, "accept")
      elseif vim.deep_equal(new, h.old) then
        review:decide({ h }, "reject")
      else
        review:decide({ h }, "edit", { new_lines = new })
      end
    end
    if final then
      go.onward(review, final)
    end
  end, finish)
  for _, p in ipairs(places) do
    local count = #lines
    marks[#marks + 1] = {
      hunk = p.hunk,
      first = vim.api.nvim_buf_set_extmark(buf, ns, math.min(p.first, math.max(count - 1, 0)), 0, { right_gravity = false }),
      last = vim.api.nvim_buf_set_extmark(buf, ns, math.min(p.last, math.max(count - 1, 0)), 0, {}),
    }
  end
  for _, h in ipairs(file.hunks) do
    view.clear(h)
  end
  file.side_by_side = true
  view.refresh(review)
  vim.cmd("diffthis")
  vim.cmd("rightbelow vsplit")
  vim.api.nvim_win_set_buf(0, buf)
  vim.cmd("diffthis")
  vim.api.nvim_echo({ { "The proposal is on the right, yours to change; :w takes it, :q leaves it undecided", "PillionHint" } }, false, {})
end

-- Shows the first file that waits side by side; the focus stays where it is.
---@param review pillion.Review
function M.beside(review)
  local here = vim.api.nvim_get_current_win()
  for _, f in ipairs(review.files) do
    for _, h in ipairs(f.hunks) do
      if not h.decision then
        if f.kind ~= "create" and f.kind ~= "delete" then
          M.split(review, f)
        end
        if vim.api.nvim_win_is_valid(here) then
          vim.api.nvim_set_current_win(here)
        end
        return
      end
    end
  end
end

-- Closes what is open of a review.
---@param review pillion.Review
function M.close(review)
  for _, entry in pairs(vim.deepcopy(vim.tbl_keys(open))) do
    local x = open[entry]
    if x and x.review == review then
      x.close()
    end
  end
end

-- The review and file of the current window, for the layout option.
---@param review pillion.Review
---@return pillion.ReviewFile?
function M.file_here(review)
  local buf = vim.api.nvim_get_current_buf()
  for _, f in ipairs(review.files) do
    if f.buf == buf then
      return f
    end
  end
  for _, f in ipairs(review.files) do
    for _, h in ipairs(f.hunks) do
      if not h.decision then
        return f
      end
    end
  end
end


return M
