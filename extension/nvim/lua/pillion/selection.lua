-- Sends the cursor and the selection to a sidecar that supports it, and resolves @selection and a range in a prompt.
local paths = require("pillion.paths")
local process = require("pillion.process")
local text = require("pillion.text")

local M = {}

local max_text = 64 * 1024 -- bytes; the text of a longer selection is not sent

---@class pillion.Selection
---@field buf integer
---@field path string
---@field first integer line, from 1
---@field last integer line, from 1
---@field text string

---@type pillion.Selection?
M.last = nil

---@param buf integer
---@param first integer from 1
---@param last integer from 1
---@return pillion.Selection
function M.lines(buf, first, last)
  local lines = vim.api.nvim_buf_get_lines(buf, first - 1, last, false)
  return { buf = buf, path = vim.api.nvim_buf_get_name(buf), first = first, last = last, text = table.concat(lines, "\n") }
end

local function ordinary(buf)
  return vim.bo[buf].buftype == "" and vim.api.nvim_buf_get_name(buf) ~= ""
end

-- Returns the present selection, or the last one in a file.
---@return pillion.Selection?
function M.current()
  local buf = vim.api.nvim_get_current_buf()
  local mode = vim.fn.mode()
  if ordinary(buf) and mode:match("^[vV\22]") then
    local a, b = vim.fn.line("v"), vim.fn.line(".")
    return M.lines(buf, math.min(a, b), math.max(a, b))
  end
  if M.last and vim.api.nvim_buf_is_loaded(M.last.buf) then
    return M.last
  end
end

local told
local function tell()
  local buf = vim.api.nvim_get_current_buf()
  if not ordinary(buf) then
    return -- the cursor is in the chat: the file before it still counts
  end
  local here = vim.api.nvim_win_get_cursor(0)
  local mode = vim.fn.mode()
  local a, b = { here[1] - 1, here[2] }, { here[1] - 1, here[2] }
  if mode:match("^[vV\22]") then
    local v = vim.fn.getpos("v")
    local w = { v[2] - 1, v[3] - 1 }
    if w[1] < a[1] or (w[1] == a[1] and w[2] < a[2]) then
      a = w
    else
      b = w
    end
    if mode == "V" then
      a[2], b[2] = 0, 2 ^ 30
    else
      b[2] = b[2] + 1
    end
    M.last = M.lines(buf, a[1] + 1, b[1] + 1)
  end
  local lines = vim.api.nvim_buf_get_lines(buf, a[1], b[1] + 1, false)
  local function position(p)
    local l = lines[p[1] - a[1] + 1] or ""
    return { line = p[1], character = text.utf16(l:sub(1, p[2])) }
  end
  local from, to = position(a), position(b)
  local key = table.concat({ buf, from.line, from.character, to.line, to.character }, " ")
  if key == told then
    return
  end
  told = key
  local s = ""
  if #lines > 0 and key and mode:match("^[vV\22]") then
    lines[#lines] = lines[#lines]:sub(1, b[2])
    lines[1] = lines[1]:sub(a[2] + 1)
    s = table.concat(lines, "\n")
    if #s > max_text or not text.valid(s) then
      s = ""
    end
  end
  process.notify("_pillion/selection/didChange", {
    textDocument = { uri = paths.to_uri(vim.api.nvim_buf_get_name(buf)) },
    selections = { { start = from, ["end"] = to } },
    text = s ~= "" and s or nil,
  })
end

-- Follows the cursor, at most five times a second.
function M.follow()
  local group = vim.api.nvim_create_augroup("pillion_selection", { clear = true })
  local waiting = false
  local telling = process.can("_pillion/selection/didChange")
  vim.api.nvim_create_autocmd({ "CursorMoved", "CursorMovedI", "BufEnter" }, {
    group = group,
    callback = function()
      local mode = vim.fn.mode()
      if not telling and not mode:match("^[vV\22]") or waiting then
        return
      end
      waiting = true
      vim.defer_fn(function()
        waiting = false
        if telling then
          tell()
        elseif ordinary(vim.api.nvim_get_current_buf()) and vim.fn.mode():match("^[vV\22]") then
          M.last = M.current()
        end
      end, 200)
    end,
  })
end

return M
