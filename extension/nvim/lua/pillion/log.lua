-- Keeps the last messages in memory and writes them to a file. The file is created with the first message.
local M = {}

---@type string[]
local recent = {}
local most = 2000
local handle

---@return string
function M.path()
  return vim.fn.stdpath("cache") .. "/pillion.log"
end

---@param level "debug"|"info"|"warn"|"error"
---@param text string
function M.add(level, text)
  local line = os.date("%H:%M:%S ") .. level .. " " .. text:gsub("%s+$", ""):sub(1, 4000)
  recent[#recent + 1] = line
  if #recent > most then
    recent = { unpack(recent, most / 2) }
  end
  if level == "debug" then
    return
  end
  if handle == nil then
    vim.fn.mkdir(vim.fn.stdpath("cache"), "p")
    local size = vim.fn.getfsize(M.path())
    handle = io.open(M.path(), size > 4 * 1024 * 1024 and "w" or "a") or false
  end
  if handle then
    handle:write(line, "\n")
    handle:flush()
  end
end

-- Shows a message to the person and logs it. May be called from anywhere.
---@param level "info"|"warn"|"error"
---@param text string
function M.tell(level, text)
  M.add(level, text)
  vim.schedule(function()
    vim.notify("Pillion: " .. text, vim.log.levels[level:upper()], { title = "Pillion" })
  end)
end

---@return string[]
function M.lines()
  return recent
end

-- Shows the log in its own window.
function M.open()
  local buf = vim.api.nvim_create_buf(false, true)
  local lines = {}
  for _, l in ipairs(recent) do
    vim.list_extend(lines, vim.split(l, "\n", { plain = true }))
  end
  if #lines == 0 then
    lines = { "Nothing has happened yet. Older entries: " .. M.path() }
  end
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].modifiable = false
  vim.bo[buf].filetype = "pillionlog"
  vim.cmd("botright 15split")
  vim.api.nvim_win_set_buf(0, buf)
  pcall(vim.api.nvim_buf_set_name, buf, "pillion://log/" .. buf)
  vim.api.nvim_win_set_cursor(0, { #lines, 0 })
end

return M
