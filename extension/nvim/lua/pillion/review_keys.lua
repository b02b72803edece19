-- The keys of a review: they exist while a buffer shows an open review, and give back what they did before.
local config = require("pillion.config")

local actions = {
  next = "next",
  prev = "prev",
  accept = "accept",
  reject = "reject",
  accept_all = "accept-all",
  reject_all = "reject-all",
  edit = "edit",
  comment = "comment",
  reset = "reset",
  split = "split",
}

-- What only moves the cursor or opens a window works at once; the others decide.
local harmless = { next = true, prev = true, edit = true, split = true }

local M = {
  -- Milliseconds in which a key that decides is ignored after the proposal appeared: it was typed for something else.
  grace = 300,
}

---@return number milliseconds of a clock that only goes forward
function M.now()
  return vim.loop.hrtime() / 1e6
end

-- Whether something appeared so recently that a key cannot have been meant for it.
---@param since number of M.now()
---@return boolean
function M.too_early(since)
  return M.now() - since < M.grace
end

-- Defines the keys in a buffer; returns what they were before, for M.remove.
---@param buf integer
---@param review pillion.Review
---@return table<string, table|false> before by key
function M.add(buf, review)
  local mapped = {}
  for name, plug in pairs(actions) do
    local lhs = config.options.keymaps[name]
    if lhs then
      local before = vim.api.nvim_buf_call(buf, function()
        return vim.fn.maparg(lhs, "n", false, true)
      end)
      mapped[lhs] = before.buffer == 1 and before or false
      local keys = vim.api.nvim_replace_termcodes("<Plug>(pillion-" .. plug .. ")", true, true, true)
      vim.keymap.set("n", lhs, function()
        if harmless[name] or not M.too_early(review.shown_at) then
          vim.api.nvim_feedkeys(keys, "m", false)
        end
      end, { buffer = buf, nowait = true, desc = "Pillion: " .. name:gsub("_", " ") })
    end
  end
  return mapped
end

-- Takes the keys away again.
---@param buf integer
---@param mapped table<string, table|false>
function M.remove(buf, mapped)
  for lhs, before in pairs(mapped) do
    pcall(vim.keymap.del, "n", lhs, { buffer = buf })
    if before then
      vim.api.nvim_buf_call(buf, function()
        pcall(vim.fn.mapset, "n", false, before)
      end)
    end
  end
end

return M
